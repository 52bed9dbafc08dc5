/** Returns a random UUID, version 4 (RFC 9562 §5.4). `randomBytes` must be cryptographically secure. */
export function newUuid(randomBytes: (size: number) => Buffer): string {
  const bytes = randomBytes(16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
