internal import Glibc
public import Transport

extension Engine {
  /// Listens at `address` for a moment, to see whether it could.
  public static func tryListening(at address: SocketAddress) throws(StartFault) {
    do throws(SystemCallError) {
      try open(address, count: 1).close()
    } catch {
      throw StartFault(description: "\(address): \(error)", number: error.number)
    }
  }
}
