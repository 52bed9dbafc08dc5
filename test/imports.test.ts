/** Which folder may import which: the map of ARCHITECTURE.md as a test. */
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, Exceptions, holds, production } from './support/source-files.ts'

const exceptions = new Exceptions({
  'state: engine/call/call-runner.ts': 'hands the state to the machine, and to nothing else',
})

const shared = [
  'engine/sip-server/flow.ts',
  'engine/sip-server/options.ts',
  'engine/sip-server/errors.ts',
]
/** What passes between the SIP server and an application. */
const applications = 'engine/sip-server/application.ts'
const helpers = ['routing', 'dispatcher', 'registrar', 'guard', 'charging', 'shares', 'trunks']
const onlyNode = /^node:/
/** SIP grammar, pure: the second public door of the embedded server, for `engine`, `control` and `schema`. */
const sipGrammar = 'engine/sip-server/message/index.ts'

const browserPackages = /^(preact(\/hooks)?|@preact\/signals|uplot(\/.*)?)$/

/** `names`: the folders of the console below it. */
const inBrowser = (...names: readonly string[]) => ({
  folders: names.map((name) => `control/console/web/${name}`),
  packages: browserPackages,
})

/** What joins the parts: from the command line down to one running process. */
const composition = { folders: ['engine', 'control', 'schema', 'package.json'], packages: /^/ }

/**
 * What each folder may import besides itself: folders (or files) here, and packages. The longest
 * entry that holds a file counts. Tests may import everything.
 */
const map: Record<string, { folders: readonly string[]; packages: RegExp }> = {
  // Read by Nodes that are too old for the rest.
  'engine/launch.ts': { folders: ['package.json'], packages: onlyNode },
  'engine/main.ts': composition,
  'engine/platform.ts': composition,
  'engine/engine-port.ts': {
    folders: ['engine/engine.ts', 'engine/media', 'schema'],
    packages: /^$/,
  },
  'engine/first-admin.ts': composition,
  'engine/socket-activation.ts': composition,
  'engine/follow-changes.ts': composition,
  'engine/stores': composition,
  'engine/duties.ts': composition,
  'engine/commands': composition,
  'engine/endpoint.ts': {
    folders: ['engine/call', 'engine/sip-server/index.ts', 'schema'],
    packages: /^$/,
  },
  'engine/engine.ts': {
    folders: [
      'engine/call',
      'engine/endpoint.ts',
      'engine/media',
      ...helpers.map((name) => `engine/${name}`),
      'engine/sip-server/index.ts',
      'engine/config.ts',
      'engine/logger.ts',
      'engine/call-totals.ts',
      'engine/event-log.ts',
      'engine/refused-calls.ts',
      'engine/state-changes.ts',
      'schema',
    ],
    packages: onlyNode,
  },
  'engine/call-totals.ts': { folders: ['schema'], packages: /^$/ },
  'engine/refused-calls.ts': { folders: ['engine/logger.ts', 'schema'], packages: /^$/ },
  'engine/backups': {
    folders: ['engine/logger.ts', 'schema'],
    packages: /^(node:|better-sqlite3$)/,
  },
  'engine/state-changes.ts': {
    folders: ['engine/dispatcher', 'engine/event-log.ts', 'schema'],
    packages: /^kysely$/,
  },
  'engine/event-log.ts': { folders: ['schema'], packages: /^$/ },
  'engine/serving-lock.ts': { folders: ['schema'], packages: /^(node:fs|better-sqlite3)$/ },
  'engine/config.ts': { folders: ['engine/settings.ts'], packages: /^(node:|zod$)/ },
  'engine/settings.ts': { folders: ['engine/setting-kinds.ts'], packages: /^zod$/ },
  'engine/setting-kinds.ts': { folders: ['schema/net', sipGrammar], packages: /^(node:net|zod)$/ },
  'engine/logger.ts': { folders: ['schema/contracts'], packages: /^(node:|pino$)/ },
  'engine/sip-server': { folders: [], packages: onlyNode },
  'engine/sip-server/program': { folders: ['engine/sip-server'], packages: /^(node:|sax$)/ },
  'engine/sip-server/build.mjs': { folders: [], packages: /^(node:|esbuild$)/ },
  'engine/sip-server/rules': { folders: ['engine/sip-server'], packages: onlyNode },
  'engine/sip-server/capture': { folders: ['engine/sip-server'], packages: onlyNode },
  // An application of its own: it knows the server by its protocol alone.
  'engine/sip-server/example': { folders: [], packages: /^drachtio-srf$/ },
  // The sans-IO layers look downwards only, and at no package: no socket, timer, clock or random.
  'engine/sip-server/message': { folders: shared, packages: /^(node:buffer|sip-status)$/ },
  'engine/sip-server/transaction': {
    folders: [...shared, 'engine/sip-server/message'],
    packages: /^$/,
  },
  'engine/sip-server/dialog': {
    folders: [...shared, 'engine/sip-server/message', 'engine/sip-server/transaction'],
    packages: /^$/,
  },
  'engine/sip-server/wire': {
    folders: [...shared, applications, 'engine/sip-server/message'],
    packages: /^node:buffer$/,
  },
  'engine/sip-server/core': {
    folders: [
      ...shared,
      applications,
      ...['message', 'transaction', 'dialog'].map((name) => `engine/sip-server/${name}`),
    ],
    packages: /^node:net$/,
  },
  'engine/sip-server/transport': { folders: ['engine/sip-server'], packages: /^(node:|ws$)/ },
  'engine/sip-server/clients': { folders: ['engine/sip-server'], packages: onlyNode },
  ...Object.fromEntries(
    helpers.map((name) => [
      `engine/${name}`,
      {
        folders: ['schema', sipGrammar],
        packages: /^(node:|kysely$|better-sqlite3$|lru-cache$)/,
      },
    ]),
  ),
  // They count calls against limits, or spend from wallets.
  ...Object.fromEntries(
    ['dispatcher', 'routing', 'charging'].map((name) => [
      `engine/${name}`,
      {
        folders: ['engine/shares', 'schema', sipGrammar],
        packages: /^(node:|kysely$|better-sqlite3$|lru-cache$)/,
      },
    ]),
  ),
  // Probes carriers' gateways with the dispatcher's prober, and reads carriers as routing does.
  'engine/trunks': {
    folders: ['engine/dispatcher', 'engine/routing', 'schema', sipGrammar],
    packages: /^$/,
  },
  'engine/call': {
    folders: ['schema', sipGrammar, applications, ...helpers.map((name) => `engine/${name}`)],
    packages: onlyNode,
  },
  // Only a drachtio-server elsewhere is spoken to by the library.
  'engine/call/user-agent/drachtio-server.ts': {
    folders: [
      'engine/call/user-agent',
      'engine/call/deadlines.ts',
      'schema',
      sipGrammar,
      applications,
    ],
    packages: /^(node:|drachtio-srf$)/,
  },
  // Stands between call control and its legs: call control does not know of it.
  'engine/media': {
    folders: ['engine/call', 'engine/guard', 'schema', sipGrammar],
    packages: onlyNode,
  },
  control: { folders: ['schema', sipGrammar], packages: /^/ },
  // Runs in other programs and in browsers: it knows the API alone.
  'control/client': { folders: [], packages: /^$/ },
  // Runs in browsers: it knows the API alone, and its types.
  'control/console/web': { folders: [], packages: browserPackages },
  'control/console/web/api': inBrowser(),
  'control/console/web/parts': inBrowser('api'),
  'control/console/web/screens': inBrowser('api', 'parts'),
  'control/console/web/app': inBrowser('api', 'parts', 'screens'),
  'control/console/web/api/views.ts': { folders: ['control'], packages: /^$/ },
  schema: { folders: [sipGrammar], packages: /^(node:|kysely$|better-sqlite3$|pg$)/ },
}

const placeOf = (path: string): string =>
  Object.keys(map)
    .filter((folder) => holds(folder, path))
    .toSorted((a, b) => b.length - a.length)[0] ?? ''

function importsOf(path: string): string[] {
  const code = codeOf.get(path) ?? ''
  const found = code.matchAll(/(?:\bfrom\s+|(?<!\/)\bimport\s*\(?\s*)'([^']+)'/g)
  return [...found].map(([, specifier = '']) => specifier)
}

test('every file imports only what the map of ARCHITECTURE.md allows', () => {
  const complaints = production.flatMap((path) => {
    const place = placeOf(path)
    const rule = map[place]
    if (rule === undefined) return [{ path, what: 'stands in no folder of the map' }]
    return importsOf(path)
      .filter((specifier) => {
        if (!specifier.startsWith('.')) return !rule.packages.test(specifier)
        const target = normalize(join(dirname(path), specifier))
        return ![place, ...rule.folders].some((folder) => holds(folder, target))
      })
      .map((specifier) => ({ path, what: `may not import ${specifier}` }))
  })
  expect(exceptions.without('imports', complaints)).toEqual([])
})

test('the console takes types of the server, and none of its code', () => {
  const code = codeOf.get('control/console/web/api/views.ts') ?? ''
  const statements = code.match(/^(?:import|export)\b[^']*\bfrom\b|^(?:import|export) *'/gm) ?? []
  expect(statements.length).toBeGreaterThan(0)
  expect(statements.filter((each) => !/^(?:import|export) type\b/.test(each))).toEqual([])
})

/** The folders of `control`, lowest first. Each may import those before it, and none after it. */
const controlLayers = [
  'http',
  'auth',
  'nodes',
  'changes',
  'resources',
  'reports',
  'money',
  'calls',
  'webhooks',
  'observe',
  'agents',
  'console',
].map((name) => `control/${name}`)

test('no folder of control imports one above it', () => {
  /** The files beside the folders join them: they stand above all. */
  const layerOf = (path: string): number => {
    const layer = controlLayers.findIndex((folder) => holds(folder, path))
    return layer < 0 ? controlLayers.length : layer
  }
  const complaints = production
    .filter((path) => holds('control', path) && !holds('control/console/web', path))
    .flatMap((path) =>
      importsOf(path)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => normalize(join(dirname(path), specifier)))
        .filter((target) => holds('control', target) && layerOf(target) > layerOf(path))
        .map((target) => ({ path, what: `imports ${target}, which stands above it` })),
    )
  expect(exceptions.without('layer', complaints)).toEqual([])
})

test('no two folders of control import each other', () => {
  const edges = new Set<string>()
  for (const path of production.filter((each) => holds('control', each)))
    for (const specifier of importsOf(path).filter((each) => each.startsWith('.'))) {
      const [from, to] = [dirname(path), dirname(normalize(join(dirname(path), specifier)))]
      // The files beside the folders join them.
      if (from !== to && from !== 'control' && holds('control', to)) edges.add(`${from} ${to}`)
    }
  const mutual = [...edges].filter((edge) => edges.has(edge.split(' ').toReversed().join(' ')))
  expect(mutual).toEqual([])
})

test('the embedded SIP server is entered through its two doors', () => {
  const complaints = production
    .filter((path) => !holds('engine/sip-server', path))
    .flatMap((path) =>
      importsOf(path)
        .filter((specifier) =>
          /sip-server\/(?!(?:(?:message\/)?index|application)\.ts$)/.test(specifier),
        )
        .map((specifier) => ({
          path,
          what: `imports ${specifier}, not a door of engine/sip-server`,
        })),
    )
  expect(exceptions.without('door', complaints)).toEqual([])
})

/** Only `live.ts` shows calls and legs outside their machine: read-only, which the compiler checks. */
test('the state of calls is written by the machine of calls alone', () => {
  const complaints = production
    .filter((path) => !holds('engine/call/call-machine', path))
    .flatMap((path) => {
      const code = codeOf.get(path) ?? ''
      const imports = code.matchAll(
        /import[^;']*\{([^}]*)\}\s*from '[^']*call-machine\/state\.ts'/g,
      )
      const names = [...imports].flatMap(([, list = '']) => list.match(/\w+/g) ?? [])
      const writable = names.filter((name) =>
        /^(?:Call|Leg|Exchange|Transfer|Attempt|World)$/.test(name),
      )
      return [...writable, ...(code.match(/\bcalls\.world\b/g) ?? [])].map((what) => ({
        path,
        what,
      }))
    })
  expect(exceptions.without('state', complaints)).toEqual([])
})

test('every exception is still needed', () => {
  expect(exceptions.unused()).toEqual([])
})
