import { expect, test } from 'vitest'
import {
  recordingWish,
  needsRelay,
  recordingOf,
} from '../../../../engine/media/recording/recordings.ts'

const extensions: Record<string, { readonly callRecording?: 'always' | 'never' | 'on_demand' }> = {
  '100@acme.example': { callRecording: 'never' },
  '101@acme.example': { callRecording: 'always' },
  '102@acme.example': { callRecording: 'on_demand' },
  '103@acme.example': {},
}
const extensionAt = (domain: string, extension: string) => extensions[`${extension}@${domain}`]

const from = (extension: string) => ({
  kind: 'extension' as const,
  extensionId: 1,
  tenantId: 1,
  customerId: null,
  domain: 'acme.example',
  extension,
  displayName: '',
})
const to = (extension: string) => ({
  kind: 'extension' as const,
  uri: `sip:${extension}@acme.example`,
  tenantId: 1,
  phones: [],
  voicemail: undefined,
})

const start = (sourceAddress: string, calledNumber: string) => ({
  callUuid: 'uuid',
  callId: 'id',
  callerNumber: '101',
  callerName: null,
  calledNumber,
  sourceAddress,
  startedAt: 0,
})

test('what a supervisor hears is not recorded, whatever its extension says; no INVITE can claim it', () => {
  const wish = (sourceAddress: string, calledNumber: string) =>
    recordingWish({ start: start(sourceAddress, calledNumber), origin: from('101') }, extensionAt)
  expect(wish('api', 'spy:uuid')).toBe('never')
  expect(wish('10.0.0.1:5060', 'spy:uuid')).toBe('always')
  expect(wish('transfer', 'spy:uuid')).toBe('always')
  expect(wish('api', '102')).toBe('always')
})

test('what connects another instance, which records the call, is not recorded a second time', () => {
  const link = { ...start('10.0.0.1:5060', '102'), isRecordedElsewhere: true }
  expect(recordingWish({ start: link, origin: from('101') }, extensionAt)).toBe('never')
})

test('the extensions of both parties are asked, the called one as soon as it is dialled', () => {
  const wish = (call: Omit<Parameters<typeof recordingWish>[0], 'start'>) =>
    recordingWish({ ...call, start: start('10.0.0.1:5060', '101') }, extensionAt)
  expect(wish({ origin: from('100'), destination: to('101') })).toBe('always')
  expect(wish({ origin: from('102'), destination: to('103') })).toBe('on_demand')
  expect(wish({ origin: from('100') })).toBe('never')
  expect(wish({ origin: { kind: 'unknown' }, destination: to('101') })).toBe('always')
  expect(wish({ origin: from('109'), destination: to('100') })).toBe('never')
})

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

test('a hook says whether a call is recorded, whatever its extensions say', () => {
  const call = { start: start('10.0.0.1:5060', '101'), origin: from('101') }
  expect(recordingWish({ ...call, isToBeRecorded: false }, extensionAt)).toBe('never')
  const other = { start: start('10.0.0.1:5060', '1555') }
  expect(recordingWish(other, extensionAt)).toBe('never')
  expect(recordingWish({ ...other, isToBeRecorded: true }, extensionAt)).toBe('always')
  const supervised = { start: start('api', 'spy:uuid-1'), isToBeRecorded: true }
  expect(recordingWish(supervised, extensionAt)).toBe('never')
})
