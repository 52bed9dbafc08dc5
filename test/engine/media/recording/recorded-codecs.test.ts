import { expect, test } from 'vitest'
import { inRecordedCodecs, offeredCodecs } from '../../../../engine/media/policy.ts'
import type { MediaParty } from '../../../../engine/media/call-media.ts'

const party = (codecs: readonly string[] | null, offered: readonly string[] = []): MediaParty =>
  inRecordedCodecs({
    rules: { policy: null, profile: 'auto', codecs, dtmf: 'auto' },
    isOnWebSocket: false,
    natAddress: undefined,
    description: {
      profile: 'rtp',
      address: '',
      codecs: offered,
      otherCodecs: [],
      hasTelephoneEvents: false,
    },
  })

test.each([
  [null, ['PCMA', 'PCMU']],
  [
    ['PCMU', 'opus', 'PCMA'],
    ['PCMU', 'PCMA'],
  ],
  [['pcmu'], ['pcmu']],
  [['opus'], ['PCMA', 'PCMU']],
])('of the codecs %j a recorded party may use %j', (codecs, expected) => {
  expect(party(codecs).rules.codecs).toEqual(expected)
})

test('an offer loses what cannot be decoded; one that has nothing else is transcoded', () => {
  expect(offeredCodecs(party(null, ['opus', 'G722', 'PCMU', 'PCMA']), party(null))).toEqual({
    kind: 'filtered',
    codecs: ['PCMA', 'PCMU'],
  })
  expect(offeredCodecs(party(null, ['opus']), party(null))).toMatchObject({ kind: 'transcoded' })
})
