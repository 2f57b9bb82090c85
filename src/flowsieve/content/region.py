"""Unions of products: the shape in which a filter's meaning is worked out before it is a list of boxes.

A product gives a set of values (as cuts) to each attribute that it constrains, by the attribute's position.
It stands for all boxes that can be made of those sets, so that `a != 1 and a != 2 and …` stays one product
however long it gets. A region is a list of products: its union.
"""

from __future__ import annotations

from itertools import product as every_choice
from math import prod

from flowsieve.content.box import Box
from flowsieve.content.cuts import (
    Cuts,
    complement,
    constraints,
    covers,
    cuts_of,
    intersection,
    union,
    whole,
)
from flowsieve.content.schema import Schema

Product = dict[int, Cuts]  # no attribute at all: everything
Region = list[Product]  # no product at all: nothing

LARGEST = 4096  # boxes
LARGEST_EFFORT = 400_000  # cuts looked at; some tenths of a second
CHEAP = 50_000  # products times attributes up to which joining is tried
FEW = 32  # products among which each is compared with each


class TooComplex(Exception):
    """A region has too many boxes, or took too long to work out."""


class Algebra:
    """The operations on regions over a schema, within a bounded effort for all of them together."""

    def __init__(self, schema: Schema, effort: int = LARGEST_EFFORT) -> None:
        self._schema = schema
        self._effort = effort

    def all_of(self, regions: list[Region]) -> Region:
        """What lies in every region."""
        if not all(regions):
            return []
        gathered: dict[int, list[Cuts]] = {}
        for region in regions:
            if len(region) == 1:  # most are: these meet in one sweep per attribute
                for i, cuts in region[0].items():
                    gathered.setdefault(i, []).append(cuts)
        core: Product = {}
        for i, sets in gathered.items():
            core[i] = self._intersection(sets)
            if not core[i]:
                return []
        out = [core]
        for region in sorted((region for region in regions if len(region) > 1), key=len):
            tangled = len(out) > 1 or any(i in core for product in region for i in product)
            out = self._meets(out, region)
            if tangled:
                out = self.tidy(out)
        return self._checked(out)

    def any_of(self, regions: list[Region]) -> Region:
        """What lies in some region."""
        if len(regions) == 1:
            return regions[0]
        return self._checked(self.tidy([product for region in regions for product in region]))

    def tidy(self, region: Region) -> Region:
        """The same region, with products joined and left out where that is easily seen."""
        if len(region) < 2:
            return region
        if not all(region):
            return [{}]
        many = [product for product in region if len(product) > 1]
        positions = {i for product in many for i in product}
        if len(many) * len(positions) <= CHEAP:
            for i in sorted(positions):
                many = self._joined(many, i)
            if not all(many):
                return [{}]
        single: dict[int, list[Cuts]] = {}
        for product in region + many:
            if len(product) == 1:
                ((i, cuts),) = product.items()
                single.setdefault(i, []).append(cuts)
        out = [product for product in many if len(product) > 1]
        for i, sets in single.items():
            self._spend(sum(map(len, sets)))
            cuts = union(sets)
            if cuts == whole(self._schema.attributes[i]):
                return [{}]
            out.append({i: cuts})
        return self._without_covered(out) if len(out) <= FEW else out

    def meet(self, one: Product, other: Product) -> Product | None:
        """What lies in both products; None if nothing does."""
        self._spend(4 + len(one))
        out = dict(one)
        for i, cuts in other.items():
            if i in out:
                cuts = self._intersection([out[i], cuts])
                if not cuts:
                    return None
            out[i] = cuts
        return out

    def minus(self, one: Product, other: Product) -> Region:
        """What lies in the first product and not in the second, as products that share nothing."""
        pieces, shared = [], one
        for i, cuts in other.items():
            attribute = self._schema.attributes[i]
            have = one.get(i, whole(attribute))
            inside = self._intersection([have, cuts])
            if not inside:
                return [one]
            outside = self._intersection([have, complement(attribute, cuts)])
            if outside:
                pieces.append({**shared, i: outside})
            shared = {**shared, i: inside}
        return pieces

    def boxes(self, region: Region) -> tuple[Box, ...]:
        """The region as boxes: its disjunctive normal form."""
        out: list[Box] = []
        for product in self._checked(region):
            choices = [[constraint] for constraint in self._schema.whole]
            for i, cuts in product.items():
                choices[i] = constraints(self._schema.attributes[i], cuts)
            out += every_choice(*choices)
        return tuple(out)

    def product(self, box: Box) -> Product:
        """A box as a product."""
        everything = self._schema.whole
        return {
            i: cuts_of(self._schema.attributes[i], constraint)
            for i, constraint in enumerate(box)
            if constraint != everything[i]
        }

    def _meets(self, region: Region, other: Region) -> Region:
        out = []
        for one in region:
            for two in other:
                both = self.meet(one, two)
                if both is not None:
                    out.append(both)
                    if len(out) > LARGEST:
                        raise TooComplex
        return out

    def _joined(self, region: Region, i: int) -> Region:
        """The same region, with products joined that differ in attribute i alone."""
        groups: dict[frozenset[tuple[int, Cuts]], list[Cuts]] = {}
        out = []
        for product in region:
            self._spend(1 + sum(map(len, product.values())))
            if i in product:
                rest = frozenset([item for item in product.items() if item[0] != i])
                groups.setdefault(rest, []).append(product[i])
            else:
                out.append(product)
        if len(groups) + len(out) == len(region):
            return region
        everything = whole(self._schema.attributes[i])
        for rest, sets in groups.items():
            self._spend(sum(map(len, sets)))
            cuts = union(sets)
            out.append(dict(rest) if cuts == everything else {**dict(rest), i: cuts})
        return out

    def _without_covered(self, region: Region) -> Region:
        kept: Region = []
        for product in sorted(region, key=len):  # the fewer attributes, the larger
            if not any(self._covers(large, product) for large in kept):
                kept = [*(small for small in kept if not self._covers(product, small)), product]
        return kept

    def _covers(self, large: Product, small: Product) -> bool:
        for i, cuts in large.items():
            if i not in small:
                return False
            self._spend(len(cuts) + len(small[i]))
            if not covers(cuts, small[i]):
                return False
        return True

    def _intersection(self, sets: list[Cuts]) -> Cuts:
        self._spend(sum(map(len, sets)))
        return intersection(sets)

    def _checked(self, region: Region) -> Region:
        boxes = (prod(self._parts(i, cuts) for i, cuts in product.items()) for product in region)
        if len(region) > LARGEST or sum(boxes) > LARGEST:
            raise TooComplex
        return region

    def _parts(self, i: int, cuts: Cuts) -> int:
        if self._schema.attributes[i].kind == "string":
            self._spend(len(cuts))
            return len(constraints(self._schema.attributes[i], cuts))
        return (len(cuts) + 1) // 2

    def _spend(self, effort: int) -> None:
        self._effort -= effort
        if self._effort < 0:
            raise TooComplex
