// What the programs ask of Foundation that needs ICU's data. `scripts/release` links only a part of that data: this
// prints the same with the part and with the whole.
import Foundation

/// FNV-1a, of 64 bits.
struct Digest {
  var value: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func add(_ text: String) {
    for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
  }
}

let scripts = [
  "Arab", "Armn", "Beng", "Bopo", "Cyrl", "Deva", "Ethi", "Geor", "Grek", "Gujr", "Guru", "Hang", "Hani", "Hebr",
  "Hira",
  "Kana", "Khmr", "Knda", "Laoo", "Latn", "Mlym", "Mymr", "Orya", "Sinh", "Taml", "Telu", "Thaa", "Thai", "Tibt",
  "Zinh",
  "Zyyy",
]
let patterns = try scripts.map { try NSRegularExpression(pattern: "^[\\p{scx=\($0)}]*\\z") }
var names = Digest()
for scalar in (0..<0x3_0000).compactMap(Unicode.Scalar.init as (UInt32) -> Unicode.Scalar?) {
  let text = "a\(scalar)é"
  names.add(text.precomposedStringWithCanonicalMapping)
  names.add(text.precomposedStringWithCompatibilityMapping)
  names.add(text.decomposedStringWithCanonicalMapping)
  names.add(text.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil))
  guard scalar.value.isMultiple(of: 11) else { continue }
  let character = "\(scalar)", range = NSRange(location: 0, length: character.utf16.count)
  names.add(zip(scripts, patterns).filter { $1.firstMatch(in: character, range: range) != nil }.map(\.0).joined())
}
print("names and scripts:", names.value)

let time = Date(timeIntervalSince1970: 1_700_000_000)
let mail = DateFormatter()
mail.locale = Locale(identifier: "en_US_POSIX")
mail.timeZone = TimeZone(identifier: "UTC")
mail.dateFormat = "EEE, dd MMM yyyy HH:mm:ss Z"
print("times:", mail.string(from: time), time.formatted(.iso8601), time.description)
print(Duration.seconds(3.25).formatted(.units(allowed: [.seconds], width: .narrow, fractionalPart: .show(length: 2))))
let zone = TimeZone(identifier: "America/New_York")
print(
  "a zone:", zone?.secondsFromGMT(for: time) ?? 0,
  zone?.nextDaylightSavingTimeTransition(after: time)?.description ?? "")

for host in ["bücher.example", "例え.jp", "faß.example", "Ⅷ.example", "☃.example", "אב.example", "a\u{200d}b.example"] {
  print(
    "a URL:", URL(string: "https://\(host)/é?q=ü")?.absoluteString ?? "none",
    URLComponents(string: "https://\(host)")?.host ?? "")
}
print(
  "errors:", CocoaError(.fileNoSuchFile).localizedDescription,
  NSError(domain: NSPOSIXErrorDomain, code: 2).localizedDescription)
