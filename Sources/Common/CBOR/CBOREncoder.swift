extension CBORValue {
  /// The deterministic encoding (RFC 8949 section 4.2.1): shortest forms, definite lengths, the pairs of a map sorted
  /// by the bytes of their encoded keys.
  public var encoded: [UInt8] {
    var output: [UInt8] = []
    write(to: &output)
    return output
  }

  private func write(to output: inout [UInt8]) {
    switch self {
    case .unsigned(let number): CBORHead.write(major: 0, number, to: &output)
    case .negative(let number): CBORHead.write(major: 1, number, to: &output)
    case .bytes(let bytes):
      CBORHead.write(major: 2, UInt64(bytes.count), to: &output)
      output += bytes
    case .text(let text):
      CBORHead.write(major: 3, UInt64(text.utf8.count), to: &output)
      output += text.utf8
    case .array(let values):
      CBORHead.write(major: 4, UInt64(values.count), to: &output)
      for value in values { value.write(to: &output) }
    case .map(let map): map.write(to: &output)
    case .tagged(let tag, let value):
      CBORHead.write(major: 6, tag, to: &output)
      value.write(to: &output)
    case .float(let number): output += CBORFloat.encode(number)
    case .boolean(let truth): output.append(truth ? 0xF5 : 0xF4)
    case .null: output.append(0xF6)
    case .undefined: output.append(0xF7)
    }
  }
}

extension CBORMap {
  fileprivate func write(to output: inout [UInt8]) {
    CBORHead.write(major: 5, UInt64(pairs.count), to: &output)
    let encoded = pairs.map { (key: $0.key.encoded, value: $0.value.encoded) }
    for pair in encoded.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) { output += pair.key + pair.value }
  }
}

/// The first bytes of a data item: major type and argument (RFC 8949 section 3).
enum CBORHead {
  /// The five low bits of the first byte of the shortest head for `argument`.
  static func shortestInformation(for argument: UInt64) -> UInt8 {
    switch argument {
    case 0..<24: UInt8(argument)
    case ...0xFF: 24
    case ...0xFFFF: 25
    case ...0xFFFF_FFFF: 26
    default: 27
    }
  }

  static func write(major: UInt8, _ argument: UInt64, to output: inout [UInt8]) {
    let information = shortestInformation(for: argument)
    output.append(major << 5 | information)
    guard information >= 24 else { return }
    output += bigEndian(argument, bytes: 1 << Int(information - 24))
  }

  static func bigEndian(_ number: UInt64, bytes: Int) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
  }
}

/// Floats in the shortest of the three widths that keeps their value; there is one NaN.
enum CBORFloat {
  static func encode(_ number: Double) -> [UInt8] {
    if let half = half(number) { return [0xF9] + CBORHead.bigEndian(UInt64(half), bytes: 2) }
    let single = Float(number)
    if Double(single) == number { return [0xFA] + CBORHead.bigEndian(UInt64(single.bitPattern), bytes: 4) }
    return [0xFB] + CBORHead.bigEndian(number.bitPattern, bytes: 8)
  }

  /// The bits of binary16 (IEEE 754), which Swift does not have on every platform; `nil` if it cannot represent
  /// `number`.
  private static func half(_ number: Double) -> UInt16? {
    if number.isNaN { return 0x7E00 }
    let sign: UInt16 = number.sign == .minus ? 0x8000 : 0
    if number.isInfinite { return sign | 0x7C00 }
    let steps = number.magnitude * 0x1p24  // in units of the smallest subnormal
    guard steps < 0x1p40, steps == steps.rounded() else { return nil }
    let units = UInt64(steps)
    let width = UInt64.bitWidth - units.leadingZeroBitCount
    guard width > 10 else { return sign | UInt16(units) }
    let shift = width - 11
    guard units.trailingZeroBitCount >= shift else { return nil }
    return sign | UInt16(shift + 1) << 10 | UInt16(truncatingIfNeeded: units >> UInt64(shift)) & 0x3FF
  }
}
