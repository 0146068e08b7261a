internal import ByteCoding

/// The file of a key for external account binding.
package enum BindingKeyFile {
  /// The key on the first line as base64url without padding; `nil` if there is none. Some authorities show base64.
  package static func key(in bytes: [UInt8]) -> String? {
    guard let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first else {
      return nil
    }
    let digits = String(line).replacing("=", with: "").replacing("+", with: "-").replacing("/", with: "_")
    return Base64URL.decode(digits).map(\.isEmpty) == false ? digits : nil
  }
}
