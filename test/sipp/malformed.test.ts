import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import { cents, expectPaid, paying, startCase } from './call-case.ts'

const scenarios = readdirSync('sipp-scenarios/malformed').map((name) => `malformed/${name}`)

test('bad input leaves no trace: the call right after it works and is charged', async () => {
  const { tollgate } = await startCase({ nodes: ['answers'] })
  for (const scenario of scenarios) {
    const result = await callWith(scenario, tollgate.sipPort, { keys: { caller: paying } })
    expect({ scenario, ...result }).toEqual({ scenario, exitCode: 0, errors: '' })
  }
  const calls = await tollgate.waitForCalls(scenarios.length)
  const cost = calls.reduce((sum, call) => sum + expectPaid(call, 1), 0)
  expect(tollgate.wallet('paying')).toMatchObject({
    balance: cents(1_000) - cost,
    debits: scenarios.length,
  })
  expect(tollgate.log.filter((line) => /"level":(50|60|"error"|"fatal")/.test(line))).toEqual([])
})
