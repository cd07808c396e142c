// Descriptors 0, 1 and 2 of a process that was started without some of them. Files that it opens would take
// their numbers, and messages would land in a file that holds results.
#pragma once

namespace capstan {

/// Fills closed ones, so that no file gets their number. Reading from or writing to such a one still fails,
/// as it would have. Called first in main().
void fill_standard_descriptors();

/// Whether there is something to read from at descriptor 0.
bool has_standard_input();

}  // namespace capstan
