/** Files of hooks in threads of Node. */
import { mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { HookHost, type HookHostDeps } from '../../engine/hooks/hook-host.ts'
import type { HookCall, HookEndedCall } from '../../schema/contracts/hooks.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'

const folder = temporaryFolder()
const call = (to: string): HookCall => ({
  callUuid: 'a',
  callId: 'b',
  from: '4930',
  fromName: null,
  to,
  domain: 'sbc.example',
  source: { kind: 'carrier', address: '192.0.2.1', port: 5060, id: 1, name: 'a', tenantId: null },
  tenantId: null,
  headers: { 'x-account': '7' },
})

const schedule: HookHostDeps['schedule'] = (work, delayMs) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

/** A host of files by their names; the first is that of the hooks. */
function hostOf(files: Readonly<Record<string, string>>, options: Partial<HookHostDeps> = {}) {
  const place = mkdtempSync(join(folder, 'hooks-'))
  const write = (name: string, text: string): void => {
    mkdirSync(join(place, name, '..'), { recursive: true })
    writeFileSync(join(place, `${name}.new`), text)
    renameSync(join(place, `${name}.new`), join(place, name))
  }
  for (const [name, text] of Object.entries(files)) write(name, text)
  const lines: string[] = []
  const host = new HookHost({
    file: join(place, Object.keys(files)[0] ?? ''),
    // A machine that stands still for a moment does not fail a test.
    timeoutMs: 5_000,
    fallback: 'continue',
    memoryMb: 64,
    environment: { CRM: 'https://crm.example' },
    now: () => performance.now(),
    wallNow: Date.now,
    schedule,
    log: (level, message) => lines.push(`${level} ${message}`),
    ...options,
  })
  onTestFinished(() => host.stop())
  const ask = (to: string) => host.ask('onInvite', call(to))
  return { host, ask, write, lines, path: (name: string) => join(place, name) }
}

async function started(...parameters: Parameters<typeof hostOf>) {
  const rig = hostOf(...parameters)
  await rig.host.start()
  return rig
}

const typed = `import { routes } from './routes.ts'
interface Call { readonly to: string }
export const onInvite = async (call: Call): Promise<object | undefined> =>
  routes.has(call.to) ? { to: routes.get(call.to), tags: { crm: process.env['CRM'] } } : undefined
`

test('TypeScript runs as it is, with its imports and the environment that it is given', async () => {
  const { ask, host } = await started({
    'hooks.ts': typed,
    'routes.ts': `export const routes = new Map<string, string>([['100', '+4930']])`,
  })
  expect(await ask('100')).toEqual({
    kind: 'decided',
    decision: { to: '+4930', tags: { crm: 'https://crm.example' } },
    by: 'hooks.ts',
    tenantId: null,
    fallback: 'continue',
  })
  expect(await ask('200')).toEqual({ kind: 'nothing' })
  expect(host.has('onRoute')).toBe(false)
})

test.each([
  ['hooks.cjs', `module.exports = { onInvite: () => ({ to: '1' }) }`],
  ['hooks.js', `exports.onInvite = () => ({ to: '1' })`],
  ['hooks.mjs', `export default { onInvite: () => ({ to: '1' }) }`],
  ['hooks.mts', `export const onInvite = (): object => ({ to: '1' })`],
])('%s is loaded', async (name, text) => {
  const { ask } = await started({ [name]: text })
  expect(await ask('100')).toMatchObject({ kind: 'decided', decision: { to: '1' } })
})

test.each([
  [
    'hooks.ts',
    'export const a: number = 1\nexport const onInvite = () => {{',
    /hooks\.ts:2: Syntax/,
  ],
  ['hooks.ts', 'enum Kind { A }\nexport const onInvite = () => Kind.A', /hooks\.ts:1: .*enum/],
  ['hooks.mjs', 'export const a = 1\nexport const b = {\n  x y\n}', /hooks\.mjs:3: Syntax/],
  ['hooks.js', 'const a = 1\nmodule.exports = { x y }', /hooks\.js:2: Syntax/],
  [
    'hooks.ts',
    `const one = 1\nimport { a } from './not-there.ts'\na()`,
    /hooks\.ts:2: Cannot find/,
  ],
  ['hooks.ts', `\n\nnull.x\nexport {}`, /hooks\.ts:3: TypeError/],
  ['hooks.ts', `process.exit(3)`, /hooks\.ts: the file ended its thread with exit code 3/],
  ['hooks.ts', `export const onInvite = 'call'`, /hooks\.ts: onInvite is a string/],
  ['hooks.ts', `export const other = 1`, /hooks\.ts: it exports no hook/],
  ['hooks.ts', `export const onInvit = () => {}`, /hooks\.ts: onInvit is exported, and is no hook/],
])('%s with %j is refused with its line and the reason', async (name, text, why) => {
  const { host } = hostOf({ [name]: text })
  await expect(host.start()).rejects.toThrow(why)
})

test('the log says which functions of the file are asked', async () => {
  const { lines, path } = await started({
    'hooks.ts': 'export const onEnd = () => {}\nexport const onInvite = () => {}',
  })
  expect(lines).toEqual([`info hooks: ${path('hooks.ts')} is loaded: onInvite, onEnd`])
})

test('a file that is not there is refused', async () => {
  const { host } = hostOf({}, { file: join(folder, 'nowhere.ts') })
  await expect(host.start()).rejects.toThrow(/nowhere\.ts: there is no such file$/)
})

const faults = `export function onInvite({ to }) {
  if (to === 'throws') throw new RangeError('no such office')
  if (to === 'rejects') return Promise.reject(new Error('CRM is away'))
  if (to === 'throws a value') throw { code: 7 }
  if (to === 'answers wrong') return { colour: 'red' }
  if (to === 'answers a function') return { headers: { 'X-A': () => 1 } }
  if (to === 'answers much') return { tags: { a: 'x'.repeat(1e6) } }
  if (to === 'never answers') return new Promise(() => undefined)
  if (to === 'stray') { setTimeout(() => { throw new Error('stray') }); Promise.reject(new Error('lost')) }
  if (to === 'hangs') for (;;);
  if (to === 'exits') process.exit(0)
  if (to === 'leaks') { const all = []; for (;;) all.push(new Array(1e5).fill(to)) }
  if (to === 'leaks buffers') { globalThis.kept = Array.from({ length: 100 }, () => Buffer.alloc(1e6, 1)) }
  return { to: '1' }
}
`

test.each([
  ['throws', /hooks\.mjs:2: RangeError: no such office$/],
  ['rejects', /hooks\.mjs:3: CRM is away$/],
  ['throws a value', /hooks\.mjs: threw \{ code: 7 \}$/],
  ['answers wrong', /hooks\.mjs: the answer of onInvite has the unknown field "colour"$/],
  ['answers a function', /header "X-A" that is a function where a text is expected$/],
  ['answers much', /tag "a" that has more than 128 characters$/],
])('a hook that %s gets the fallback, with file and line', async (to, why) => {
  const { ask, host } = await started({ 'hooks.mjs': faults })
  expect(await ask(to)).toMatchObject({ kind: 'failed', why: expect.stringMatching(why) })
  expect(host.troubles()).toMatchObject([{ by: 'hooks.mjs', hook: 'onInvite', count: 1 }])
  expect((await ask('100')).kind).toBe('decided')
})

test('a hook that never answers gets the fallback after the limit; other calls go on', async () => {
  const { ask } = await started({ 'hooks.mjs': faults }, { timeoutMs: 300, fallback: 'refuse' })
  const asked = ask('never answers')
  expect((await ask('100')).kind).toBe('decided')
  expect(await asked).toMatchObject({
    kind: 'failed',
    why: 'onInvite did not answer within 300 ms',
    fallback: 'refuse',
  })
})

test('errors that nothing catches are told, and end neither thread nor process', async () => {
  const { ask, host, lines } = await started({ 'hooks.mjs': faults })
  await ask('stray')
  await eventually(() =>
    expect(host.troubles()).toMatchObject([{ hook: null, count: 2, file: expect.anything() }]),
  )
  expect(lines.join('\n')).toMatch(/an error that nothing caught: /)
  expect((await ask('100')).kind).toBe('decided')
  expect(host.telemetry()).toMatchObject({ hooks_restarts_total: 0 })
})

test.each([
  ['hangs', /did not answer/],
  ['exits', /the file ended its thread with exit code 0/],
  ['leaks', /used more than HOOKS_MEMORY_MB, 64 MB/],
  ['leaks buffers', /used more than HOOKS_MEMORY_MB, 64 MB/],
])('a file that %s is started anew, and meanwhile keeps nobody', async (to, why) => {
  const { ask, host } = await started({ 'hooks.mjs': faults }, { timeoutMs: 200 })
  let late = 0
  let last = performance.now()
  const watch = setInterval(() => {
    const now = performance.now()
    late = Math.max(late, now - last)
    last = now
  }, 10)
  onTestFinished(() => clearInterval(watch))
  await ask(to)
  await eventually(() =>
    expect(host.troubles().map(({ message }) => message)).toContainEqual(
      expect.stringMatching(why),
    ),
  )
  await eventually(async () => expect((await ask('100')).kind).toBe('decided'))
  expect(host.telemetry()).toMatchObject({ hooks_restarts_total: 1, hooks_loaded: 1 })
  // The machine may stand still, but not as long as the thread hangs.
  expect(late).toBeLessThan(1_000)
})

test('a change of the file, or of one that it imports, holds without a restart', async () => {
  const { ask, host, write } = await started({
    'hooks.ts': typed,
    'routes.ts': `export const routes = new Map([['100', '1']])`,
  })
  write('routes.ts', `export const routes = new Map([['100', '2']])`)
  await eventually(async () => expect(await ask('100')).toMatchObject({ decision: { to: '2' } }))
  write('hooks.ts', `import { routes } from './more/routes.ts'\nexport const onRoute = routes`)
  await eventually(() => expect(host.troubles()).toMatchObject([{ hook: null, line: 1 }]))
  expect(await ask('100')).toMatchObject({ decision: { to: '2' } })
  write('more/routes.ts', `export const routes = () => undefined`)
  await eventually(() => expect(host.has('onRoute')).toBe(true))
  expect(host.has('onInvite')).toBe(false)
  expect(host.troubles()).toEqual([])
})

test('a thread that is replaced ends what it was told, and then itself', async () => {
  const text = (answer: string) => `
    let n = 0
    export const onInvite = () => ({ to: '${answer}' })
    export const onEnd = async ({ to }) => {
      await new Promise((done) => setTimeout(done, 1_000))
      console.log('ended', to)
    }`
  const { ask, host, write, lines } = await started({ 'hooks.mjs': text('1') })
  host.tell('onEnd', { to: '100' } as HookEndedCall)
  write('hooks.mjs', text('2'))
  await host.reload()
  expect(await ask('100')).toMatchObject({ decision: { to: '2' } })
  await eventually(() => expect(lines).toContain('info hooks: ended 100'))
  await eventually(() => expect(host.telemetry()).toMatchObject({ hooks_leaving_threads: 0 }))
  expect(host.telemetry()).toMatchObject({ hook_on_end_calls_total: 1, hooks_restarts_total: 0 })
})

test('a file that prints without end fills no log', async () => {
  const text = `export const onInvite = () => { for (let i = 0; i < 1e5; i++) console.log('line', i) }`
  const { ask, lines } = await started({ 'hooks.mjs': text })
  expect((await ask('100')).kind).toBe('nothing')
  await eventually(() => expect(lines).toContain('warn hooks: lines were left out'))
  expect(lines.length).toBeLessThan(300)
})
