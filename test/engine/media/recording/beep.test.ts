import { expect, test } from 'vitest'
import { beepWav } from '../../../../engine/media/recording/recorder.ts'

test('the tone is a WAV of a fifth of a second, in ASCII, so that it passes as text', () => {
  const text = beepWav()
  const bytes = Buffer.from(text, 'utf8')
  expect(bytes).toEqual(Buffer.from(text, 'ascii'))
  expect(bytes.every((byte) => byte < 0x80)).toBe(true)
  expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
  expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8)
  expect([bytes.readUInt16LE(20), bytes.readUInt16LE(22), bytes.readUInt32LE(24)]).toEqual([
    1, 1, 8_000,
  ])
  expect([bytes.readUInt16LE(34), bytes.readUInt32LE(40)]).toEqual([8, 1_600])
})
