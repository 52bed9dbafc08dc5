/** The contents of a finished WAV: its length, and what is heard on each channel. */
import { shareOf, wavSound } from './tones.ts'

export interface Wav {
  readonly channels: number
  readonly rate: number
  readonly seconds: number
  /** How much of a channel is this tone between these seconds: 0 to 1. */
  tone(channel: number, hertz: number, from?: number, to?: number): number
  /** The loudest sample of a channel between these seconds. */
  peak(channel: number, from?: number, to?: number): number
}

/** @throws when its head says anything but what it has. */
export function readWav(bytes: Buffer): Wav {
  const text = (at: number): string => bytes.toString('latin1', at, at + 4)
  if (text(0) !== 'RIFF' || text(8) !== 'WAVE' || text(36) !== 'data') throw new Error('no WAV')
  const [channels, rate] = [bytes.readUInt16LE(22), bytes.readUInt32LE(24)]
  const size = bytes.readUInt32LE(40)
  if (size !== bytes.length - 44 || bytes.readUInt32LE(4) !== size + 36)
    throw new Error(`the WAV says ${size} bytes, and has ${bytes.length - 44}`)
  const part = (channel: number, from: number, to: number) => ({
    rate,
    samples: wavSound(bytes, channel).samples.subarray(from * rate, to * rate),
  })
  return {
    channels,
    rate,
    seconds: size / (channels * 2 * rate),
    tone: (channel, hertz, from = 0, to = Infinity) => shareOf(hertz, part(channel, from, to)),
    peak: (channel, from = 0, to = Infinity) =>
      part(channel, from, to).samples.reduce((most, one) => Math.max(most, Math.abs(one)), 0),
  }
}
