internal import CQREncode

/// A QR code (ISO/IEC 18004), drawn by libqrencode.
public struct QRCode: Sendable, Hashable {
  /// How much of the symbol may be unreadable: about 7, 15, 25 or 30 percent.
  public enum Correction: Sendable, CaseIterable {
    case low, medium, quartile, high
  }

  /// The modules of a side, 21 to 177, without the margin.
  public let size: Int
  /// The rows one after another; `true` is dark.
  private let modules: [Bool]

  /// The empty modules around a symbol that readers need.
  public static let margin = 4

  /// Draws the UTF-8 bytes of `text`.
  ///
  /// - Throws: `.tooLong` if no symbol holds them: at most 2,331 bytes with medium correction.
  public init(_ text: String, correction: Correction = .medium) throws(QRCodeError) {
    let bytes = Array(text.utf8)
    guard !bytes.isEmpty else { throw .empty }
    let level: QRecLevel =
      switch correction {
      case .low: QR_ECLEVEL_L
      case .medium: QR_ECLEVEL_M
      case .quartile: QR_ECLEVEL_Q
      case .high: QR_ECLEVEL_H
      }
    guard bytes.count <= 4096, let symbol = QRcode_encodeData(Int32(bytes.count), bytes, 0, level) else {
      throw .tooLong(bytes: bytes.count)
    }
    defer { QRcode_free(symbol) }
    size = Int(symbol.pointee.width)
    // The lowest bit of a module is its color.
    modules = UnsafeBufferPointer(start: symbol.pointee.data, count: size * size).map { $0 & 1 == 1 }
  }

  /// Whether the module is dark. Outside the symbol all are light.
  public func isDark(_ x: Int, _ y: Int) -> Bool {
    (0..<size).contains(x) && (0..<size).contains(y) && modules[y * size + x]
  }

  /// The symbol as text, two rows a line. Light modules are full blocks, so that readers see dark on light where the
  /// terminal is dark.
  ///
  /// - Parameter isInverted: For a terminal that is light.
  public func terminalText(isInverted: Bool = false) -> String {
    let blocks = isInverted ? [" ", "▄", "▀", "█"] : ["█", "▀", "▄", " "]
    let range = -Self.margin..<size + Self.margin
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { y in
      range.map { x in blocks[(isDark(x, y) ? 2 : 0) + (isDark(x, y + 1) ? 1 : 0)] }.joined() + "\n"
    }.joined()
  }

  /// The width and height of the symbol with its quiet zone, in modules.
  public var side: Int { size + 2 * Self.margin }

  /// The dark modules as the path of an SVG of `side` by `side`.
  public var path: String {
    var path = ""
    for y in 0..<size {
      for x in 0..<size where isDark(x, y) { path += "M\(x + Self.margin) \(y + Self.margin)h1v1h-1z" }
    }
    return path
  }

  /// The symbol as SVG, dark on white.
  public func svg() -> String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(side) \(side)" width="\(side * 8)" height="\(side * 8)" \
    shape-rendering="crispEdges"><path fill="#fff" d="M0 0h\(side)v\(side)H0z"/><path d="\(path)"/></svg>

    """
  }
}

/// Why a text has no QR code.
public enum QRCodeError: Error, Sendable, Hashable {
  /// There is nothing to draw.
  case empty
  /// No symbol holds so many bytes.
  case tooLong(bytes: Int)
}

extension QRCodeError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .empty: "there is nothing to draw"
    case .tooLong(let bytes): "a QR code holds at most 2,331 bytes, not \(bytes)"
    }
  }
}
