/** What a packet begins, as far as the guard wants to know it: read from its first bytes. */

/** `open`: a connection, before its first message. */
export type PacketKind = 'register' | 'invite' | 'open' | 'other'

export function kindOf(packet: Buffer | string): PacketKind {
  if (packet.length === 0) return 'open'
  if (codeAt(packet, 0) === 0x49 && codeAt(packet, 1) === 0x4e && codeAt(packet, 2) === 0x56)
    return 'invite'
  // REG: of the known methods only REFER begins alike.
  return codeAt(packet, 0) === 0x52 && codeAt(packet, 1) === 0x45 && codeAt(packet, 2) === 0x47
    ? 'register'
    : 'other'
}

export function kindOfMethod(method: string): PacketKind {
  if (method === 'INVITE') return 'invite'
  return method === 'REGISTER' ? 'register' : 'other'
}

const codeAt = (packet: Buffer | string, at: number): number | undefined =>
  typeof packet === 'string' ? packet.charCodeAt(at) : packet[at]
