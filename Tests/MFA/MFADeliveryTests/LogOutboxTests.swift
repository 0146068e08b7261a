import MFADelivery
import MFADomain
import MFAFixtures
import Testing

@Suite("The log in place of a provider")
struct LogOutboxTests {
  @Test("A-097 a code goes into the log in the seed's words")
  func words() throws {
    let log = CapturedLog()
    LogOutbox(logger: log.logger).send(
      OutgoingMessage(destination: .phone(try PhoneNumber("+1234567890")), code: "000042", lifetime: .seconds(300)))
    #expect(log.lines.map(\.message) == ["📱 SMS to +1234567890: Your OTP is 000042"])
  }
}
