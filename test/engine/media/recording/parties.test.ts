import { expect, test } from 'vitest'
import { recordingWish } from '../../../../engine/media/recording/parties.ts'

const extensions: Record<string, { readonly callRecording?: 'always' | 'never' | 'on_demand' }> = {
  '100@acme.example': { callRecording: 'never' },
  '101@acme.example': { callRecording: 'always' },
  '102@acme.example': { callRecording: 'on_demand' },
  '103@acme.example': {},
}
const extensionAt = (domain: string, extension: string) => extensions[`${extension}@${domain}`]

const from = (extension: string) => ({
  kind: 'extension' as const,
  ...{ extensionId: 1, tenantId: 1, customerId: null, domain: 'acme.example', extension },
  displayName: '',
})
const to = (extension: string) => ({
  kind: 'extension' as const,
  ...{ uri: `sip:${extension}@acme.example`, tenantId: 1, phones: [], voicemail: undefined },
})

test('the extensions of both parties are asked, the called one as soon as it is dialled', () => {
  const wish = (call: Parameters<typeof recordingWish>[0]) => recordingWish(call, extensionAt)
  expect(wish({ origin: from('100'), destination: to('101') })).toBe('always')
  expect(wish({ origin: from('102'), destination: to('103') })).toBe('on_demand')
  expect(wish({ origin: from('100') })).toBe('never')
  expect(wish({ origin: { kind: 'unknown' }, destination: to('101') })).toBe('always')
  expect(wish({ origin: from('109'), destination: to('100') })).toBe('never')
})
