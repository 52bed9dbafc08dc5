import { expect, test } from 'vitest'
import { reasonPhrase } from '../../../../engine/sip-server/message/message.ts'

test.each([
  [200, 'OK'],
  [183, 'Session Progress'],
  [437, 'Unsupported Credential'],
  [481, 'Call/Transaction Does Not Exist'],
  [504, 'Server Time-out'],
  [608, 'Rejected'],
  [487, 'Request Terminated'],
  [503, 'Service Unavailable'],
  [299, 'OK'],
  [399, 'Multiple Choices'],
  [499, 'Bad Request'],
  [699, 'Busy Everywhere'],
  [42, 'Unknown'],
])('%d is %s', (status, phrase) => {
  expect(reasonPhrase(status)).toBe(phrase)
})
