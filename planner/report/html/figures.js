"use strict";
(function () {
  var figures = JSON.parse(document.getElementById("figure-data").textContent);
  var config = { displayModeBar: false, responsive: true, showTips: false, doubleClick: false };

  // With a view box the drawing scales on paper, where no script can draw it anew.
  function scalable(place) {
    place.querySelectorAll("svg.main-svg").forEach(function (svg) {
      svg.setAttribute("viewBox", "0 0 " + svg.getAttribute("width") + " " + svg.getAttribute("height"));
    });
  }

  // What a screen reader should know is in the label and in the table beside the figure.
  function draw(id) {
    var place = document.getElementById(id);
    Plotly.newPlot(place, figures[id].data, figures[id].layout, config).then(function () {
      scalable(place);
      place.on("plotly_afterplot", function () { scalable(place); });
      place.setAttribute("data-drawn", "yes");
    });
  }

  Object.keys(figures).forEach(draw);
})();
