import { expect, test } from 'vitest'
import { allScopes } from '../../../control/auth/scopes.ts'
import { runCommandLine } from '../../../engine/commands/index.ts'
import { settings } from '../../../engine/settings.ts'
import { fakeWorld } from './fake-world.ts'

const commands = [
  'serve',
  'demo',
  'test-pbx',
  'migrate',
  'seed',
  'key create',
  'user create',
  'user password',
  'backup',
  'restore',
  'check',
  'secrets reset',
  'sip-server',
  'mcp',
]

test('--help lists every command', async () => {
  const world = fakeWorld({})
  expect(await runCommandLine(['--help'], world)).toBe(0)
  const listed = world.printed.join('\n').matchAll(/^ {2}([a-z-]+(?: create| password| reset)?)/gm)
  expect([...listed].map(([, name]) => name)).toEqual(commands)
})

test('--version names the program and its version', async () => {
  const world = fakeWorld({})
  expect(await runCommandLine(['--version'], world)).toBe(0)
  expect(world.printed).toEqual([expect.stringMatching(/^tollgate \d+\.\d+\.\d+$/)])
})

test.each(commands)('%s --help tells how to call it', async (name) => {
  const world = fakeWorld({})
  expect(await runCommandLine([...name.split(' '), '--help'], world)).toBe(0)
  expect(world.printed.join('\n')).toContain(`tollgate ${name}`)
})

test('serve --help lists every setting with its default and what is allowed', async () => {
  const world = fakeWorld({})
  await runCommandLine(['serve', '--help'], world)
  const help = world.printed.join('\n')
  for (const { name, meaning, whenUnset, allowed } of Object.values(settings))
    expect(help).toContain(
      `  ${name}\n      ${meaning}\n      default: ${whenUnset}; allowed: ${allowed}`,
    )
})

test.each([
  ['key', ['key create --name NAME']],
  [
    'user',
    ['user create --username NAME --role admin|operator|auditor', 'user password --username NAME'],
  ],
  ['secrets', ['secrets reset']],
])('%s --help lists what begins with this word', async (word, calls) => {
  for (const words of [
    [word, '--help'],
    [word, '-h'],
    ['help', word],
    [word, 'nothing', '--help'],
  ]) {
    const world = fakeWorld({})
    expect(await runCommandLine(words, world)).toBe(0)
    for (const call of calls) expect(world.printed.join('\n')).toContain(`  ${call}  `)
  }
})

test('key create --help lists every scope that a route asks for', async () => {
  const world = fakeWorld({})
  await runCommandLine(['key', 'create', '--help'], world)
  const help = world.printed.join('\n')
  for (const scope of allScopes) expect(help).toContain(` ${scope}`)
})

test.each([['migrate'], ['check']])('a misspelled setting is named by %s', async (command) => {
  const world = fakeWorld({ DATABASE_PATH: ':memory:', PROBE_INTERVALL_MS: '100' })
  await runCommandLine([command], world)
  expect([...world.printed, ...world.complaints].join('\n')).toContain(
    'PROBE_INTERVALL_MS is not a setting; did you mean PROBE_INTERVAL_MS?',
  )
  expect(world.printed).not.toContain('settings: right')
})

const misuse: [string, string[], string][] = [
  ['an unknown command', ['sreve'], 'unknown command "sreve"; see tollgate --help'],
  ['half a command', ['key'], 'key needs another word; see tollgate key --help'],
  ['a wrong second word', ['key', 'make'], 'unknown command "key make"; see tollgate key --help'],
  [
    'an unknown scope',
    ['key', 'create', '--name', 'x', '--scopes', 'all'],
    '--scopes: is not a scope of this service: it must be "*"',
  ],
  ['an unknown option', ['check', '--fast'], "Unknown option '--fast'"],
  ['a missing argument', ['backup'], 'backup needs FILE'],
  ['a surplus argument', ['check', 'twice'], 'check does not take "twice"'],
  ['a missing option', ['key', 'create'], 'key create needs --name NAME'],
  [
    'a wrong address',
    ['sip-server', '--listen', '5060', '--admin', 'x:1', '--secret', 's'],
    '--listen is "5060"',
  ],
  [
    'an unknown count',
    [
      'sip-server',
      '--listen',
      'udp/127.0.0.1:0',
      '--admin',
      '127.0.0.1:0',
      '--secret',
      's',
      '--frame-length',
      'words',
    ],
    '--frame-length is "words"; allowed is bytes or characters',
  ],
]

test.each(misuse)('%s is wrong usage: exit code 2 and one line', async (_what, words, line) => {
  const world = fakeWorld({})
  expect(await runCommandLine(words, world)).toBe(2)
  expect(world.complaints).toEqual([expect.stringContaining(`tollgate: ${line}`)])
  expect(world.complaints[0]).not.toContain('\n')
})

test('a wrong setting stops any command with exit code 2 and the line that names it', async () => {
  const world = fakeWorld({ DRAIN_SECONDS: 'long' })
  expect(await runCommandLine(['migrate'], world)).toBe(2)
  expect(world.complaints).toEqual([
    'tollgate: DRAIN_SECONDS is "long"; allowed is a whole number from 0 to 3600 (s)',
  ])
})
