/**
 * Bytes ⇄ text, without loss for any input. SIP text is UTF-8 (RFC 3261 §7), but a body may hold
 * arbitrary bytes (ISUP, SMS). A byte that is not UTF-8 becomes one lone surrogate, U+DC80 to
 * U+DCFF, and goes back to the same byte: such a body crosses an application unharmed, and no flag
 * has to be carried beside the text. (Python knows this as `surrogateescape`.)
 */
import { isAscii, isUtf8 } from 'node:buffer'

/** One message or datagram as text. `encodeMessage` gives back exactly these bytes. */
export function decodeMessage(bytes: Buffer): string {
  // The quickest way to a string, and nearly every message can take it.
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : decodeEscaping(bytes)
}

export function encodeMessage(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  // As many bytes as characters: all ASCII, which nearly every message is.
  if (bytes.length === text.length) return bytes
  return hasEscapedBytes(text) ? encodeEscaped(text) : bytes
}

/** Bytes that a text takes on the wire. */
export function byteLength(text: string): number {
  const length = Buffer.byteLength(text, 'utf8')
  return length !== text.length && hasEscapedBytes(text) ? encodeEscaped(text).length : length
}

/** The last header of a message, and the empty line before its body. */
export const contentLengthLine = (body: string): string =>
  `Content-Length: ${body === '' ? 0 : byteLength(body)}\r\n\r\n`

const escaped = /[\uDC80-\uDCFF]/u

/** Whether a text came from bytes that were not UTF-8. Answered at once for Latin-1 strings. */
export const hasEscapedBytes = (text: string): boolean => escaped.test(text)

const escapeBase = 0xdc00

/** Bytes that are not UTF-8 as the letters of Latin-1 that they mostly are; its control characters as U+FFFD. */
export const escapedAsLatin1 = (text: string): string =>
  text.replace(/[\uDC80-\uDCFF]/gu, (character) => {
    const byte = character.charCodeAt(0) - escapeBase
    return byte < 0xa0 ? '\ufffd' : String.fromCharCode(byte)
  })

function decodeEscaping(bytes: Buffer): string {
  const parts: string[] = []
  let start = 0
  let at = 0
  while (at < bytes.length) {
    const length = sequenceLength(bytes, at)
    if (length > 0) {
      at += length
      continue
    }
    parts.push(
      bytes.toString('utf8', start, at),
      String.fromCharCode(escapeBase + (bytes[at] ?? 0)),
    )
    at++
    start = at
  }
  parts.push(bytes.toString('utf8', start))
  return parts.join('')
}

/** Length of the valid UTF-8 sequence at a position; 0 when none starts there. */
function sequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  return isUtf8(bytes.subarray(at, at + length)) ? length : 0
}

function encodeEscaped(text: string): Buffer {
  const parts: Buffer[] = []
  let start = 0
  for (const match of text.matchAll(/[\uDC80-\uDCFF]/gu)) {
    parts.push(Buffer.from(text.slice(start, match.index), 'utf8'))
    parts.push(Buffer.of(match[0].charCodeAt(0) - escapeBase))
    start = match.index + 1
  }
  parts.push(Buffer.from(text.slice(start), 'utf8'))
  return Buffer.concat(parts)
}

/**
 * Returns a flat copy of a text that outlives the message from which it was cut. V8 represents a part of
 * a string as a view that keeps the whole string alive, and a sum as a tree of its parts. Reading a character
 * near the end of a sum makes V8 flatten it; what is left is one string. Costs about 50 ns; without it an ended
 * call held 12 kB instead of 4 (`npm run bench -- memory`).
 */
export function detachString(text: string): string {
  if (text.length < longEnough) return text
  const copy = text.charAt(0) + text.slice(1)
  // Stored, or the compiler would leave the reading out.
  lastRead.code = copy.charCodeAt(text.length - 1)
  return copy
}

const lastRead = { code: 0 }

/** Shorter parts are copied by V8 itself. */
const longEnough = 13
