internal import CLinux

/// The kernel's randomness, fetched for several numbers at a time: a system call a number would be felt.
///
/// No number is given out twice, nor kept once it has been.
struct RandomPool: RandomNumberGenerator {
  private static let capacity = 64
  private let numbers: UnsafeMutablePointer<UInt64> = .allocate(capacity: capacity)
  private var left = 0

  func deallocate() { numbers.deallocate() }

  mutating func next() -> UInt64 {
    if left == 0 { refill() }
    left -= 1
    defer { numbers[left] = 0 }
    return numbers[left]
  }

  private mutating func refill() {
    var generator = SystemRandomNumberGenerator()
    let size = Self.capacity * MemoryLayout<UInt64>.size
    // Of up to 256 bytes getrandom(2) gives all or fails; what it does not give, the slow way does.
    for start in stride(from: 0, to: size, by: 256) {
      let part = UnsafeMutableRawPointer(numbers) + start
      if getrandom(part, 256, 0) == 256 { continue }
      for index in 0..<(256 / 8) { part.storeBytes(of: generator.next(), toByteOffset: index * 8, as: UInt64.self) }
    }
    left = Self.capacity
  }
}
