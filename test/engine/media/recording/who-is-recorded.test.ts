import { expect, test } from 'vitest'
import { needsRelay, recordingOf } from '../../../../engine/media/recording/recordings.ts'

test.each([
  [['always', 'never'], 'always'],
  [['never', 'always'], 'always'],
  [['on_demand', 'always'], 'always'],
  [['on_demand', 'never'], 'on_demand'],
  [['on_demand', undefined], 'on_demand'],
  [['never', 'never'], 'never'],
  [[undefined, 'never'], 'never'],
  [[], 'never'],
] as const)('extensions that say %j make a call that is recorded: %s', (wishes, recording) => {
  expect(recordingOf(wishes)).toBe(recording)
})

test('a call that may be recorded later goes through a relay from its beginning', () => {
  expect(needsRelay('on_demand')).toBe(true)
  expect(needsRelay('never')).toBe(false)
})
