/**
 * The tone that tells both parties that they are recorded: 0.2 s of 1400 Hz (the tone of ITU-T E.180 supplement 2), as a WAV.
 * Text of the ng protocol is UTF-8: with 7 bits per sample, and these lengths, each byte is one character of ASCII.
 */

const RATE = 8_000
const SAMPLES = RATE / 5
const HERTZ = 1_400

export const beepWav = (): string =>
  [
    'RIFF',
    long(36 + SAMPLES),
    'WAVE',
    'fmt ',
    long(16),
    short(1),
    short(1),
    long(RATE),
    long(RATE),
    short(1),
    short(8),
    'data',
    long(SAMPLES),
    ...Array.from({ length: SAMPLES }, (_, at) => character(sample(at))),
  ].join('')

const sample = (at: number): number =>
  0x50 + Math.round(0x2f * Math.sin((2 * Math.PI * HERTZ * at) / RATE))

const character = (byte: number): string => String.fromCharCode(byte & 0xff)

const short = (value: number): string => character(value) + character(value >> 8)

const long = (value: number): string => short(value & 0xffff) + short(value >>> 16)
