/**
 * Things that only the rim of the program may do: everything else is given its time, randomness and
 * settings.
 */
import { expect, test } from 'vitest'
import { codeOf, holds } from './support/source-files.ts'

const program = [
  'engine/main.ts',
  'engine/launch.ts',
  'engine/sip-server/bin.ts',
  'engine/sip-server/options.ts',
  'engine/sip-server/server.ts',
  // The kit runs in the process of a test.
  'engine/testing/index.ts',
  'control/client',
]
/** A thread is its own rim, and so is a browser. */
const rims = [
  ...program,
  'engine/media/spy/mixer-worker.ts',
  'engine/hooks/hook-worker.ts',
  'control/reports/report-worker.ts',
  'control/console/web/api/browser.ts',
]

test.each([
  {
    what: 'reading the clock',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/g,
    instead: 'take `now: () => number` as an argument',
    rim: rims,
  },
  {
    what: 'drawing random numbers',
    pattern:
      /\bMath\.random\b|\bcrypto\.random|import \{[^}]*\brandom(?:Bytes|UUID|Int|FillSync)\b[^}]*\} from 'node:crypto'/g,
    instead: 'take `random` (or `randomBytes`) as an argument',
    rim: [...program, 'engine/hooks/hook-worker.ts'],
  },
  {
    what: 'reading the environment, handling signals or ending the process',
    pattern: /\bprocess\.(?:env|on|once|exit|exitCode)\b/g,
    instead: 'declare a setting in engine/settings.ts; return an exit code to engine/main.ts',
    // What the operator's file leaves uncaught ends its thread otherwise.
    rim: [...program, 'engine/hooks/hook-worker.ts'],
  },
  {
    what: 'starting a timer',
    pattern: /\b(?:setTimeout|setInterval)\(|(?<!await )\bsetImmediate\(/g,
    instead: 'take `schedule` as an argument, or give a deadline to the owner of the timer',
    rim: [
      ...rims,
      'engine/sip-server/machine.ts',
      'engine/sip-server/capture/packet-sender.ts',
      'engine/sip-server/clients',
      'engine/sip-server/transport',
      'engine/sip-server/dns/system-dns.ts',
      'engine/sip-server/example',
      // Ends a transaction that outlives its turn of the event loop.
      'schema/sql/sqlite-statements.ts',
    ],
  },
  {
    what: 'moving money',
    pattern: /\binsertInto\('ledger_entry'\)|\bset\(\{[^}]*\b(?:balance_micros|is_depleted)\b/g,
    instead: 'post it through a `LedgerPort` (schema/contracts/charging.ts)',
    rim: ['engine/charging/ledger'],
  },
])('$what is left to the rim', ({ pattern, instead, rim }) => {
  const complaints = [...codeOf]
    .filter(([path]) => !rim.some((folder) => holds(folder, path)))
    .flatMap(([path, code]) =>
      [...code.matchAll(pattern)].map(([found]) => `${path}: ${found}; ${instead}`),
    )
  expect(complaints).toEqual([])
})
