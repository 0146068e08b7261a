internal import CPictures

/// Reads the QR codes of a picture.
public enum QRReader {
  /// The largest file that is read, in bytes: 64 MiB.
  public static let largest = 64 << 20

  /// The texts of all QR codes in a PNG or JPEG file, each once, from top to bottom and left to right.
  ///
  /// A picture without a wanted code is tried again with light and dark exchanged, as pages in dark mode show codes, and
  /// then with black behind its transparent pixels.
  ///
  /// A picture that looks like many codes can take minutes, and the search cannot be interrupted: pictures of strangers
  /// are read in a process of their own, whose processor time is limited (setrlimit(2)).
  ///
  /// - Parameter isWanted: Whether a code ends the search. Codes that were found before are returned with it.
  /// - Throws: `QRReaderError`. A picture of more than 40 million pixels is refused before it is decoded.
  public static func texts(
    in file: [UInt8], until isWanted: (String) -> Bool = { _ in true }
  ) throws(QRReaderError) -> [String] {
    guard file.count <= largest else { throw .tooLarge }
    let isPNG = PNGImage.isPNG(file)
    let image =
      if isPNG {
        try PNGImage.decode(file, on: 255)
      } else if JPEGImage.isJPEG(file) {
        try JPEGImage.decode(file)
      } else {
        throw QRReaderError.unknownFormat
      }
    // As bytes: `String` takes two different texts as one if they differ only in the spelling of a character.
    var seen: Set<[UInt8]> = []
    var texts: [String] = []
    func look(_ image: Luminance) throws(QRReaderError) -> Bool {
      texts += try find(in: image).sorted { ($0.y, $0.x) < ($1.y, $1.x) }.map(\.text)
        .filter { seen.insert(Array($0.utf8)).inserted }
      return texts.contains(where: isWanted)
    }
    if try look(image) { return texts }
    if try look(image.inverted) { return texts }
    if isPNG {
      let onBlack = try PNGImage.decode(file, on: 0)
      if onBlack.pixels != image.pixels, try !look(onBlack) { _ = try look(onBlack.inverted) }
    }
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
  /// A PNG of more than 8,192 chunks.
  case tooManyChunks
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
    case .tooManyChunks: "the picture has more than \(PNGChunks.most) chunks"
    case .noCode: "the picture has no QR code that can be read"
    }
  }
}
