/** What carriers, sets, extensions, tenants and agents say about media, and which headers their calls do not carry. */
import type { Relaxed } from '../../rebuild.ts'

export const relaxed: readonly Relaxed[] = [
  {
    table: 'carrier',
    part: "CHECK (media IN ('bypass', 'anchor'))",
    replacement: "CHECK (media IN ('bypass', 'prefer', 'anchor'))",
  },
]

const profile = `ADD COLUMN media_profile TEXT NOT NULL DEFAULT 'auto'
  CHECK (media_profile IN ('auto', 'rtp', 'srtp', 'webrtc'))`
const dtmf = `ADD COLUMN dtmf TEXT NOT NULL DEFAULT 'auto' CHECK (dtmf IN ('auto', 'rfc4733', 'info'))`
const headers = `ADD COLUMN strip_headers TEXT`

const ofOthers = ['dispatcher_set', 'extension', 'tenant', 'ai_agent'].map(
  (table) => `
ALTER TABLE ${table} ADD COLUMN media TEXT CHECK (media IN ('bypass', 'prefer', 'anchor'));
ALTER TABLE ${table} ${profile};
ALTER TABLE ${table} ADD COLUMN codecs TEXT;
ALTER TABLE ${table} ${dtmf};`,
)

export const sql = `
ALTER TABLE carrier ${profile};
ALTER TABLE carrier ${dtmf};
ALTER TABLE carrier ${headers};
ALTER TABLE ai_agent ${headers};
${ofOthers.join('')}
`
