import { expect, test } from 'vitest'
import { recordingFile } from '../../../schema/rules/media.ts'

const uuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'

test('only the uuid of a call becomes the name of a file', () => {
  expect(recordingFile(uuid)).toBe(`${uuid}.wav`)
  for (const text of ['', '..', '../etc/passwd', `${uuid}/..`, `${uuid}\n`, uuid.toUpperCase()])
    expect(recordingFile(text)).toBeUndefined()
})
