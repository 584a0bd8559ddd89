"use strict";
(function () {
  var figures = JSON.parse(document.getElementById("figure-data").textContent);
  var config = { displayModeBar: false, responsive: true, showTips: false, doubleClick: false };

  // A label that is wider than a narrow page is set closer; the table has it as it is.
  function fitting(place) {
    var width = place.clientWidth - 12;
    place.querySelectorAll(".annotation-text").forEach(function (label) {
      label.removeAttribute("textLength");
      if (label.getComputedTextLength() > width) {
        label.setAttribute("textLength", width);
        label.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    });
  }

  // With a view box the drawing scales on paper, where no script can draw it anew.
  function scalable(place) {
    place.querySelectorAll("svg.main-svg").forEach(function (svg) {
      svg.setAttribute("viewBox", "0 0 " + svg.getAttribute("width") + " " + svg.getAttribute("height"));
    });
  }

  // What a screen reader should know is in the label and in the table beside the figure.
  function draw(id) {
    var place = document.getElementById(id);
    function done() { scalable(place); fitting(place); }
    Plotly.newPlot(place, figures[id].data, figures[id].layout, config).then(function () {
      done();
      place.on("plotly_afterplot", done);
      place.setAttribute("data-drawn", "yes");
    });
  }

  Object.keys(figures).forEach(draw);
})();
