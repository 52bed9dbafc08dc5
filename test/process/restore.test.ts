import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { freePort } from '../support/free-port.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

/** Everything that money and records add up to. */
const sumsOf = (tollgate: TollgateProcess) =>
  tollgate.query(`SELECT
    (SELECT count(*) FROM cdr) AS calls, (SELECT sum(cost_micros) FROM cdr) AS cost,
    (SELECT count(*) FROM ledger_entry) AS entries, (SELECT sum(amount_micros) FROM ledger_entry) AS ledger,
    (SELECT sum(balance_micros) FROM wallet) AS balance`)

test.each(['kill', 'terminate'] as const)(
  'restored after a %s and served again: balances, ledger and records are those of the backup',
  async (end) => {
    const tollgate = await TollgateProcess.start(seedFor([await freePort()]))
    onTestFinished(() => tollgate.stop())
    const token = await tollgate.createKey('--name', 'node', '--kind', 'billing', '--scopes', 'ocs')
    const report = async (callUuid: string) => {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/ocs/cdr`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ call_uuid: callUuid, caller: paying, callee: '1800', billsec: 60 }),
      })
      expect(answer.status).toBe(200)
    }
    for (const call of ['a', 'b', 'c']) await report(call)
    const file = join(tollgate.folder, 'backup.db')
    await tollgate.run(['backup', file])
    const backedUp = sumsOf(tollgate)
    expect(backedUp).toMatchObject([
      { calls: 3, cost: 1_800_000, balance: 8_220_000, ledger: 8_220_000 },
    ])

    await report('d')
    expect(sumsOf(tollgate)).toMatchObject([{ calls: 4, balance: 7_620_000, ledger: 7_620_000 }])
    await tollgate[end]()
    expect(existsSync(`${tollgate.databasePath}-wal`)).toBe(end === 'kill')
    await tollgate.run(['restore', file])
    await tollgate.restart()
    expect(sumsOf(tollgate)).toEqual(backedUp)
    await report('d')
    expect(sumsOf(tollgate)).toMatchObject([{ calls: 4, balance: 7_620_000, ledger: 7_620_000 }])
    expect(tollgate.faults).toEqual([])
    expect(await tollgate.terminate()).toBe(0)
    await tollgate.run(['check'])
  },
)
