import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { SippNode, callWith, startCallers } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const live = 30

async function withLiveCalls(): Promise<TollgateProcess> {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(
    seedFor([node.port], { balance: '1000.00' }),
    patientInstances,
  )
  onTestFinished(() => tollgate.stop())
  const callers = await startCallers('inbound/caller-is-hung-up.xml', tollgate.sipPort, {
    calls: live,
    rate: 100,
    keys: { caller: paying },
  })
  onTestFinished(async () => void (await callers.stop()))
  await expect.poll(() => tollgate.openCalls()).toHaveLength(live)
  return tollgate
}

/** The journal as another version of the program would find it. */
function forgetStates({ databasePath }: TollgateProcess): void {
  const [folder, start] = [dirname(databasePath), `${basename(databasePath)}.calls-`]
  for (const name of readdirSync(folder).filter((each) => each.startsWith(start))) {
    const file = join(folder, name)
    const lines = readFileSync(file, 'latin1').split('\n')
    writeFileSync(file, lines.filter((line) => !line.includes('{"saved":')).join('\n'), 'latin1')
  }
}

test('kill -9 with 30 live calls that cannot go on: the next start records and charges each once, and a second at least; the one after that none', async () => {
  const tollgate = await withLiveCalls()
  const open = tollgate.openCalls().map((call) => call.call_uuid)
  // Before the first heartbeat: all that is known of them is that they were answered.
  await tollgate.kill()
  expect(tollgate.calls()).toEqual([])
  forgetStates(tollgate)

  await tollgate.restart()
  const calls = tollgate.calls()
  expect(calls.map((call) => call.call_uuid).toSorted()).toEqual(open.toSorted())
  for (const call of calls) {
    expect(call).toMatchObject({
      disposition: 'ANSWERED',
      is_recovered: 1,
      hangup_cause: 'PROCESS_RESTART',
      hangup_by: 'system',
      sip_code: 200,
    })
    expect(call.billsec).toBeGreaterThan(0)
    expect(call.cost_micros).toBe(cents(call.billsec))
  }
  expect(tollgate.openCalls()).toEqual([])
  const cost = calls.reduce((sum, call) => sum + call.cost_micros, 0)
  const wallet = tollgate.wallet('paying')
  const left = cents(100_000) - cost
  expect(wallet).toEqual({ balance: left, ledger: left, debits: live })

  await tollgate.kill()
  await tollgate.restart()
  expect(tollgate.calls()).toEqual(calls)
  expect(tollgate.wallet('paying')).toEqual(wallet)
  expect(tollgate.faults).toEqual([])
  const next = await callWith('inbound/answered.xml', tollgate.sipPort, {
    keys: { caller: paying },
  })
  expect(next).toEqual({ exitCode: 0, errors: '' })
})

const journalOf = ({ databasePath }: TollgateProcess): string[] =>
  readdirSync(dirname(databasePath))
    .filter((name) => name.startsWith(`${basename(databasePath)}.calls-`))
    .map((name) => join(dirname(databasePath), name))

const readyOf = async ({ apiPort }: TollgateProcess): Promise<unknown> => {
  const answer = await fetch(`http://127.0.0.1:${apiPort}/readyz`)
  return { status: answer.status, ...((await answer.json()) as object) }
}

test('a journal that is missing or zeroed after kill -9 is told by check, in the log and at readyz until a start after a clean stop; calls are served', async () => {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port], { balance: '1000.00' }))
  onTestFinished(() => tollgate.stop())
  const call = async () =>
    expect(
      await callWith('inbound/answered.xml', tollgate.sipPort, { keys: { caller: paying } }),
    ).toEqual({ exitCode: 0, errors: '' })
  const isFine = async (): Promise<void> => {
    await tollgate.run(['check'])
    await tollgate.restart()
    expect(await readyOf(tollgate)).toMatchObject({ status: 200, data: { journal: 'whole' } })
    expect(tollgate.faults).toEqual([])
  }
  await call()
  await tollgate.kill()
  expect(journalOf(tollgate)).not.toEqual([])
  await isFine()

  const harms: [string, (file: string) => void][] = [
    ['is missing', (file) => rmSync(file)],
    ['is empty or overwritten', (file) => writeFileSync(file, Buffer.alloc(statSync(file).size))],
  ]
  for (const [said, harm] of harms) {
    await call()
    await tollgate.kill()
    for (const file of journalOf(tollgate)) harm(file)
    await expect(tollgate.run(['check'])).rejects.toThrow('exit 1')
    await tollgate.restart()
    expect(tollgate.faults).toEqual([expect.stringContaining(said)])
    expect(await readyOf(tollgate)).toMatchObject({
      status: 200,
      data: { status: 'ready', journal: 'lost' },
    })
    await call()
    expect(await tollgate.terminate()).toBe(0)
    tollgate.log.length = 0
    await isFine()
  }
})
