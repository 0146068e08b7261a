internal import Glibc

/// A failed system call and its error number.
struct SystemCallError: Error, CustomStringConvertible {
  let call: String
  let number: Int32

  init(_ call: String, number: Int32 = errno) {
    self.call = call
    self.number = number
  }

  /// Whether this process, or the machine, has no descriptor or memory left: no fault of the other side.
  var isShortage: Bool { [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(number) }

  /// For example `bind: Address already in use`.
  var description: String { "\(call): \(Self.text(of: number))" }

  static func text(of number: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard strerror_r(number, &buffer, buffer.count) == 0 else { return "error \(number)" }
    return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "error \(number)" }
  }
}

/// Returns the result of `call`, or throws its error. Interrupted calls are repeated.
func attempt(_ name: String, _ call: () -> Int32) throws(SystemCallError) -> Int32 {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw SystemCallError(name) }
  }
}
