import { expect, test } from 'vitest'
import { didYouMean } from '../../../schema/rules/names.ts'

const names = ['acme-main', 'acme-spare', 'Globex', 'sip:10.0.0.1:5060;transport=udp']

test.each([
  ['acme-mian', ' Did you mean "acme-main"?'],
  ['ACME-MAIN', ' Did you mean "acme-main"?'],
  ['globx', ' Did you mean "Globex"?'],
  ['acme', ' Did you mean "acme-main" or "acme-spare"?'],
  ['the acme-main account', ' Did you mean "acme-main"?'],
  ['sip:10.0.0.2:5060;transport=udp', ' Did you mean "sip:10.0.0.1:5060;transport=udp"?'],
  ['initech', ''],
  ['', ''],
  ['a', ''],
])('for %s: %s', (wrong, offer) => {
  expect(didYouMean(wrong, names)).toBe(offer)
})
