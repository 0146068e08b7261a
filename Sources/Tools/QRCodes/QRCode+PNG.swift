public import QREncoding

extension QRCode {
  /// The symbol as PNG in shades of grey.
  ///
  /// - Parameter scale: The pixels of a module's side, 1 to 32.
  public func png(scale: Int = 8) -> [UInt8] {
    let scale = min(max(scale, 1), 32)
    let side = (size + 2 * Self.margin) * scale
    var pixels = [UInt8](repeating: 255, count: side * side)
    for y in 0..<size {
      for x in 0..<size where isDark(x, y) {
        let start = ((y + Self.margin) * side + x + Self.margin) * scale
        for row in 0..<scale {
          for column in 0..<scale { pixels[start + row * side + column] = 0 }
        }
      }
    }
    return PNGImage.encode(pixels, width: side, height: side)
  }
}
