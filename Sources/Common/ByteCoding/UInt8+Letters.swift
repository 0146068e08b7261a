extension UInt8 {
  /// The byte of the small letter for a capital letter of ASCII, and any other byte unchanged.
  @inlinable
  public var lowercasedASCII: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }
}
