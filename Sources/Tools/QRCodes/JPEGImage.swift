internal import CPictures

/// JPEG (ISO/IEC 10918), by libjpeg-turbo.
enum JPEGImage {
  static func isJPEG(_ bytes: [UInt8]) -> Bool { bytes.starts(with: [0xFF, 0xD8, 0xFF]) }

  /// The brightness of each pixel.
  static func decode(_ bytes: [UInt8]) throws(QRReaderError) -> Luminance {
    guard let decoder = tjInitDecompress() else { throw .damaged }
    defer { tjDestroy(decoder) }
    var (width, height, subsampling, colors) = (Int32(0), Int32(0), Int32(0), Int32(0))
    let length = UInt(bytes.count)
    guard tjDecompressHeader3(decoder, bytes, length, &width, &height, &subsampling, &colors) == 0 else {
      throw .damaged
    }
    guard Luminance.fits(Int(width), Int(height)) else {
      throw .tooManyPixels(width: Int(width), height: Int(height))
    }
    var pixels = [UInt8](repeating: 255, count: Int(width) * Int(height))
    // A warning, as of a file that was cut off, counts as an error, and so do more than 500 passes over the pixels.
    guard
      tjDecompress2(
        decoder, bytes, length, &pixels, width, 0, height, Int32(TJPF_GRAY.rawValue),
        TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) == 0
    else { throw .damaged }
    return Luminance(pixels: pixels, width: Int(width), height: Int(height))
  }
}
