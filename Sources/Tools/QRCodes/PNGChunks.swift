/// The chunks of a PNG (ISO/IEC 15948 section 5.3) that its brightness needs.
///
/// libpng inflates compressed texts and color profiles while it looks for the picture: hundreds of them, each of a few
/// KiB in the file and 8 MB in memory.
enum PNGChunks {
  /// The most chunks of a file. A picture of 64 MiB in the usual pieces of 8 KiB has as many.
  static let most = 8192

  /// `file` without the chunks that do not change which pixel is dark: only header, palette, transparency and pixels
  /// are kept. What follows a malformed chunk is kept too, for libpng to refuse.
  ///
  /// - Throws: `.tooManyChunks`.
  static func needed(of file: [UInt8]) throws(QRReaderError) -> [UInt8] {
    let kept: Set<[UInt8]> = [
      Array("IHDR".utf8), Array("PLTE".utf8), Array("tRNS".utf8), Array("IDAT".utf8), Array("IEND".utf8),
    ]
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
      if kept.contains(Array(file[start + 4..<start + 8])) { result += file[start..<end] }
      start = end
    }
    result += file[start...]
    return result
  }
}
