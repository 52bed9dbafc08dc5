import { expect, test } from 'vitest'
import { MixerThread } from '../../../../engine/media/spy/mixer-thread.ts'

test('a supervisor for whom the system has no room for a thread gets no mixer, and no call ends', async () => {
  const errors: string[] = []
  // As beyond the limit of threads, it is refused when it is to be made.
  const refused = new URL('http://localhost/mixer.js')
  const mixers = new MixerThread((_level, message) => errors.push(message), refused)
  for (const id of ['one', 'two'])
    expect(await mixers.open(id, '127.0.0.1', () => undefined)).toBeUndefined()
  mixers.close('one')
  expect(errors).toHaveLength(2)
  await mixers.stop()
})
