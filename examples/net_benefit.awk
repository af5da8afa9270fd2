# The net benefit of a diagnosis: right alarms, less false ones at the odds of a chosen risk (here 1 to 9).
# Reads lines "label,decision" and prints one number; 1 is malignant, 0 is benign.
BEGIN { FS = "," }
$2 == 1 && $1 == 1 { right += 1 }
$2 == 1 && $1 == 0 { wrong += 1 }
END { print right / NR - wrong / NR / 9 }
