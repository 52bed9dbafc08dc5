/** The examples of test/README.md: the rig with SIPp. */
import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { expectPaid, paying, startCase } from './call-case.ts'

test('a call is set up, recorded and charged', async () => {
  const { tollgate } = await startCase({ nodes: ['answers'] })
  const result = await callWith('inbound/answered.xml', tollgate.sipPort, {
    keys: { caller: paying },
  })
  expect(result.exitCode).toBe(0)
  const [call] = await tollgate.waitForCalls(1)
  expectPaid(call, 1)
})
