internal import CZXing

/// Reads the QR codes of a picture.
public enum QRReader {
  /// The largest file that is read, in bytes: 64 MiB.
  public static let largest = 64 << 20

  /// The texts of all QR codes in a PNG or JPEG file, each once, from top to bottom and left to right.
  ///
  /// - Throws: `QRReaderError`. A picture of more than 40 million pixels is refused before it is decoded.
  public static func texts(in file: [UInt8]) throws(QRReaderError) -> [String] {
    guard file.count <= largest else { throw .tooLarge }
    let image =
      if PNGImage.isPNG(file) {
        try PNGImage.decode(file)
      } else if JPEGImage.isJPEG(file) {
        try JPEGImage.decode(file)
      } else {
        throw QRReaderError.unknownFormat
      }
    var seen: Set<String> = []
    let texts = try find(in: image).sorted { ($0.y, $0.x) < ($1.y, $1.x) }.map(\.text)
      .filter { seen.insert($0).inserted }
    guard !texts.isEmpty else { throw .noCode }
    return texts
  }

  private struct Found {
    let text: String
    let x: Int32
    let y: Int32
  }

  private static func find(in image: Luminance) throws(QRReaderError) -> [Found] {
    var found: [Found] = []
    let status = withUnsafeMutablePointer(to: &found) { list in
      zxing_read(image.pixels, Int32(image.width), Int32(image.height), list) { context, bytes, count, x, y in
        let list = context?.assumingMemoryBound(to: [Found].self)
        let text = String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
        list?.pointee.append(Found(text: text, x: x, y: y))
      }
    }
    guard status == 0 else { throw .tooLarge }
    return found
  }
}

/// Why a file has no text.
public enum QRReaderError: Error, Sendable, Hashable {
  /// It is neither PNG nor JPEG.
  case unknownFormat
  /// It is cut off or malformed.
  case damaged
  /// It has more than 40 million pixels.
  case tooManyPixels(width: Int, height: Int)
  /// It is longer than 64 MiB, or memory is short.
  case tooLarge
  /// It has no QR code that can be read.
  case noCode
}

extension QRReaderError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unknownFormat: "neither a PNG nor a JPEG file"
    case .damaged: "the picture is cut off or malformed"
    case .tooManyPixels(let width, let height): "the picture has \(width) × \(height) pixels; 40 million are read"
    case .tooLarge: "the picture is too large"
    case .noCode: "the picture has no QR code that can be read"
    }
  }
}
