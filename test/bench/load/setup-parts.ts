/**
 * Where the time of a set-up goes, from the packets of the loopback: until the INVITE leaves, until
 * the node has answered, and until the 200 leaves.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

export interface SetupParts {
  readonly inviteMs: number
  readonly nodeMs: number
  readonly answerMs: number
}

/** Packets to and from the port for so many seconds. */
export async function capture(port: number, seconds: number, file: string): Promise<void> {
  const filter = `udp port ${port}`
  const words = `-q -P -i lo -s 900 -B 64 -a duration:${seconds}`.split(' ')
  const child = spawn('dumpcap', [...words, '-f', filter, '-w', file], { stdio: 'ignore' })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`dumpcap: exit ${String(code)}`)
}

interface Times {
  inviteIn?: number
  inviteOut?: number
  okIn?: number
  okOut?: number
}

/** The calls of which all four packets were seen; retransmissions do not count. */
export function setupParts(file: string, port: number): readonly SetupParts[] {
  const calls = new Map<string, Times>()
  const callOfLeg = new Map<string, Times>()
  for (const { at, source, text } of packetsOf(readFileSync(file))) {
    const id = /^Call-ID: *(.*?)\r$/im.exec(text)?.[1] ?? ''
    const isOut = source === port
    if (text.startsWith('INVITE ')) {
      const number = /^o=(caller \d+) /m.exec(text)?.[1] ?? ''
      const call = calls.get(number) ?? {}
      calls.set(number, call)
      callOfLeg.set(id, call)
      if (isOut) call.inviteOut ??= at
      else call.inviteIn ??= at
    } else if (text.startsWith('SIP/2.0 200') && /^CSeq: *\d+ INVITE\r$/im.test(text)) {
      const call = callOfLeg.get(id)
      if (call === undefined) continue
      if (isOut) call.okOut ??= at
      else call.okIn ??= at
    }
  }
  return [...calls.values()].flatMap(({ inviteIn, inviteOut, okIn, okOut }) =>
    inviteIn === undefined || inviteOut === undefined || okIn === undefined || okOut === undefined
      ? []
      : [{ inviteMs: inviteOut - inviteIn, nodeMs: okIn - inviteOut, answerMs: okOut - okIn }],
  )
}

/** Lengths of the headers of a file, a packet, and Ethernet, IPv4 and UDP. */
const [FILE, PACKET, HEADERS] = [24, 16, 42]

function* packetsOf(bytes: Buffer): Generator<{ at: number; source: number; text: string }> {
  for (let at = FILE; at + PACKET <= bytes.length;) {
    const length = bytes.readUInt32LE(at + 8)
    const begin = at + PACKET
    if (length > HEADERS)
      yield {
        at: bytes.readUInt32LE(at) * 1_000 + bytes.readUInt32LE(at + 4) / 1_000,
        source: bytes.readUInt16BE(begin + 34),
        text: bytes.toString('latin1', begin + HEADERS, begin + length),
      }
    at = begin + length
  }
}
