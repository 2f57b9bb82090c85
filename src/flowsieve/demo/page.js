// Shows the titles of a picture at once and beside the pointer, instead of late and where the browser likes.
const tip = document.getElementById("tip");
for (const title of document.querySelectorAll("svg.network g > title")) {
  const text = title.textContent, of = title.parentNode;
  of.setAttribute("aria-label", text);
  title.remove();
  of.addEventListener("mousemove", (at) => {
    tip.textContent = text;
    tip.style.display = "block";
    tip.style.left = Math.min(at.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = at.clientY + 16 + "px";
  });
  of.addEventListener("mouseleave", () => { tip.style.display = "none"; });
}
for (const title of document.querySelectorAll("svg.network > title")) title.remove();
