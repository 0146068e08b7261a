/// The chunks of a PNG (ISO/IEC 15948 section 5.3) that its brightness needs.
///
/// libpng inflates compressed texts and color profiles while it looks for the picture: hundreds of them, each of a few
/// KiB in the file and 8 MB in memory.
enum PNGChunks {
  /// The most chunks of a file. A picture of 64 MiB in the usual pieces of 8 KiB has as many.
  static let most = 8192

  /// `file` without the chunks that do not change which pixel is dark: only header, palette, transparency and pixels
  /// are kept. A chunk that is cut off, and what follows it, is kept for libpng to refuse if it is one of these: of
  /// others libpng would first allocate the length that they claim, up to 2 GiB.
  ///
  /// - Throws: `.tooManyChunks`.
  static func needed(of file: [UInt8]) throws(QRReaderError) -> [UInt8] {
    var result = Array(file.prefix(8))
    result.reserveCapacity(file.count)
    var start = 8
    var count = 0
    // A length of four bytes, a type of four, the data, and a checksum of four.
    while file.count - start >= 12 {
      count += 1
      guard count <= most else { throw .tooManyChunks }
      let length = file[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      guard length <= file.count - start - 12 else { break }
      let end = start + 12 + length
      if isNeeded(file[start..<end]) { result += file[start..<end] }
      start = end
    }
    if isNeeded(file[start...]) { result += file[start...] }
    return result
  }

  private static let neededTypes = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"].map { Array($0.utf8) }

  /// Whether the type of `chunk`, which may be cut off, is one that the brightness needs.
  private static func isNeeded(_ chunk: ArraySlice<UInt8>) -> Bool {
    let type = chunk.dropFirst(4).prefix(4)
    return neededTypes.contains { $0.elementsEqual(type) }
  }
}
