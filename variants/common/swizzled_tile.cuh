// A tile of ROWS rows of COLUMNS elements in shared memory, laid out so that eight rows of one 16-byte chunk, a
// row of chunks, and what ldmatrix and wgmma read, all come without bank conflicts.
//
// The columns are cut into panels of 128 bytes (one of 64 bytes where a row has no more). A panel holds all its
// rows one after the other, and the 16-byte chunks of a row are permuted by its number. This is the layout that
// wgmma calls swizzled by 128 (64) bytes, in a tile that begins at a multiple of 1024 bytes.
#pragma once

template <typename T, int ROWS, int COLUMNS>
struct SwizzledTile {
  static constexpr int kRows = ROWS, kColumns = COLUMNS;
  static constexpr int kChunk = 16 / int(sizeof(T));                        // elements
  static constexpr int kPitch = COLUMNS * int(sizeof(T)) < 128 ? 64 : 128;  // bytes from row to row
  static constexpr int kPanelColumns = kPitch / int(sizeof(T));
  static constexpr int kPanels = COLUMNS / kPanelColumns;
  static constexpr int kPanelBytes = ROWS * kPitch;
  static constexpr int kBytes = kPanels * kPanelBytes;
  static_assert(kPanels * kPanelColumns == COLUMNS, "rows are 64 bytes or a multiple of 128");

  // Where the chunk that begins at a column (a multiple of kChunk) lies, in bytes.
  static __device__ __forceinline__ int offset(int row, int column) {
    const int chunk = column % kPanelColumns / kChunk;
    const int turn = kPitch == 128 ? row & 7 : row >> 1 & 3;
    return column / kPanelColumns * kPanelBytes + row * kPitch + (chunk ^ turn) * 16;
  }

  // The offset (or, in a tile that begins at a multiple of 1024, the address) of the chunk `rows` below and
  // `columns` to the right of another one: a multiple of 8 rows, and columns that set no bit which those of the
  // other one, within its panel, have set. So one register serves all that a thread reads of a tile.
  static __device__ __forceinline__ unsigned int moved(unsigned int from, int rows, int columns) {
    return (from ^ (columns % kPanelColumns / kChunk * 16)) + columns / kPanelColumns * kPanelBytes +
           rows * kPitch;
  }
};
