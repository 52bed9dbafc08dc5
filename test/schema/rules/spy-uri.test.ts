import { expect, test } from 'vitest'
import { canSpy, renderSpyUri, type SpyValues } from '../../../schema/rules/media.ts'

const values: SpyValues = { call_uuid: 'u-1', mode: 'barge', side: 'caller', node: '10.0.0.1:5060' }

test('every placeholder is filled in wherever it stands, and nothing else is touched', () => {
  expect(renderSpyUri('sip:{mode}.{side}.{call_uuid}.{mode}@{node};transport=udp', values)).toBe(
    'sip:barge.caller.u-1.barge@10.0.0.1:5060;transport=udp',
  )
  expect(renderSpyUri('sip:spy@pbx', { ...values, node: '{mode}' })).toBe('sip:spy@pbx')
})

test('only to listen to both is possible where there is no word for anything else', () => {
  expect(canSpy('sip:{call_uuid}@{node}', 'listen', 'both')).toBe(true)
  expect(canSpy('sip:{call_uuid}@{node}', 'whisper', 'both')).toBe(false)
  expect(canSpy('sip:{call_uuid}@{node}', 'listen', 'caller')).toBe(false)
  expect(canSpy('sip:{mode}{call_uuid}@{node}', 'barge', 'both')).toBe(true)
  expect(canSpy('sip:{mode}{side}{call_uuid}@{node}', 'whisper', 'callee')).toBe(true)
})
