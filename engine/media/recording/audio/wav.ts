/** The RIFF header of PCM with 16 bits (pure). */

export const SAMPLE_RATE = 8_000
export const WAV_HEADER = 44
const BYTES_PER_SAMPLE = 2

/** A frame is one sample of each channel. */
export function wavHeader(frames: number, channels: number): Buffer {
  const frameBytes = channels * BYTES_PER_SAMPLE
  const size = frames * frameBytes
  const header = Buffer.alloc(WAV_HEADER)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(WAV_HEADER - 8 + size, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(channels, 22)
  header.writeUInt32LE(SAMPLE_RATE, 24)
  header.writeUInt32LE(SAMPLE_RATE * frameBytes, 28)
  header.writeUInt16LE(frameBytes, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(size, 40)
  return header
}
