internal import CPictures

/// PNG (ISO/IEC 15948), by libpng's simplified functions, which return errors and never jump.
enum PNGImage {
  private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  static func isPNG(_ bytes: [UInt8]) -> Bool { bytes.starts(with: signature) }

  /// The brightness of each pixel.
  ///
  /// - Parameter background: The brightness behind transparent pixels.
  static func decode(_ bytes: [UInt8], on background: UInt8) throws(QRReaderError) -> Luminance {
    let bytes = try PNGChunks.needed(of: bytes)
    var image = png_image()
    image.version = png_uint_32(PNG_IMAGE_VERSION)
    // Frees what the image holds, also after an error.
    defer { png_image_free(&image) }
    let result = bytes.withUnsafeBytes { buffer -> Result<Luminance, QRReaderError> in
      guard png_image_begin_read_from_memory(&image, buffer.baseAddress, buffer.count) != 0 else {
        return .failure(.damaged)
      }
      let (width, height) = (Int(image.width), Int(image.height))
      guard Luminance.fits(width, height) else { return .failure(.tooManyPixels(width: width, height: height)) }
      // 8 bits of grey, without an alpha channel.
      image.format = 0
      var color = png_color(red: background, green: background, blue: background)
      var pixels = [UInt8](repeating: 255, count: width * height)
      guard png_image_finish_read(&image, &color, &pixels, Int32(width), nil) != 0 else { return .failure(.damaged) }
      return .success(Luminance(pixels: pixels, width: width, height: height))
    }
    return try result.get()
  }

  /// A PNG of `width` times `height` bytes of brightness.
  static func encode(_ pixels: [UInt8], width: Int, height: Int) -> [UInt8] {
    var image = png_image()
    image.version = png_uint_32(PNG_IMAGE_VERSION)
    image.width = png_uint_32(width)
    image.height = png_uint_32(height)
    defer { png_image_free(&image) }
    // The largest symbol at the largest scale has 35 million pixels, and compresses well below its size.
    var bytes = [UInt8](repeating: 0, count: width * height + height + 65_536)
    var count = png_alloc_size_t(bytes.count)
    let isWritten = png_image_write_to_memory(&image, &bytes, &count, 0, pixels, Int32(width), nil)
    precondition(isWritten != 0, "libpng cannot write an image of these measures")
    return Array(bytes[..<Int(count)])
  }
}

/// The brightness of each pixel of an image, row after row.
struct Luminance {
  /// Larger images are refused before memory is taken for them.
  static let mostPixels = 40_000_000

  let pixels: [UInt8]
  let width: Int
  let height: Int

  /// Dark where this one is light.
  var inverted: Luminance { Luminance(pixels: pixels.map { ~$0 }, width: width, height: height) }

  static func fits(_ width: Int, _ height: Int) -> Bool {
    let (pixels, isTooLarge) = width.multipliedReportingOverflow(by: height)
    return width > 0 && height > 0 && !isTooLarge && pixels <= mostPixels
  }
}
