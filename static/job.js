// The page of a running job, kept up to date. Without this script the page reloads itself.
"use strict";
const place = document.getElementById("job");
if (place && place.dataset.events) {
  const source = new EventSource(place.dataset.events);
  source.onmessage = (message) => {
    const news = JSON.parse(message.data);
    const open = place.querySelector("details")?.open;
    place.innerHTML = news.html;
    if (open) place.querySelector("details").open = true;
    place.dataset.seen = message.lastEventId;
    if (news.over) {
      source.close();
      // Without what was said when the job was asked for.
      location.replace(location.pathname);
    }
  };
  source.onerror = () => {
    // Cut off: the browser asks again by itself. Refused for good: look at the page anew.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  };
}
