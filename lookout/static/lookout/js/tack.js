// What cannot be done without script, one subject per file. Every page works when none of it is loaded.
import "./live.js";
import "./unfold.js";
import "./dialogs.js";
import "./keys.js";
import "./copy.js";
import "./choices.js";
import "./lines.js";
import "./numbers.js";
import "./unsaved.js";

document.documentElement.classList.add("js");
