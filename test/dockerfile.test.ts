import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const lines = readFileSync('Dockerfile', 'utf8')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
const last = (instruction: string): string | undefined =>
  lines.findLast((line) => line.startsWith(`${instruction} `))
const position = (instruction: string): number =>
  lines.findLastIndex((line) => line.startsWith(`${instruction} `))

test('the image is built from the lock file, and what only the build needs stays behind', () => {
  expect(lines).toContain('RUN npm ci')
  expect(lines.filter((line) => line.startsWith('FROM '))).toHaveLength(2)
  expect(last('FROM')).toMatch(/-slim$/)
  expect(lines.slice(position('FROM')).filter((line) => line.startsWith('COPY '))).toSatisfy(
    (copies: string[]) => copies.every((copy) => copy.startsWith('COPY --from=build ')),
  )
})

test('the process does not run as root, and may write where the data are', () => {
  expect(last('USER')).toBe('USER node')
  expect(position('USER')).toBeGreaterThan(position('RUN'))
  expect(last('RUN')).toContain('chown node:node /data')
  expect(last('VOLUME')).toBe('VOLUME /data')
  expect(last('ENV')).toContain('DATABASE_PATH=/data/tollgate.db')
})

test('the signal to stop reaches the process itself', () => {
  expect(last('STOPSIGNAL')).toBe('STOPSIGNAL SIGTERM')
  expect(last('ENTRYPOINT')).toMatch(/^ENTRYPOINT \["node", .*"dist\/main\.js"\]$/)
})

test('its health is what /readyz says', () => {
  expect(last('HEALTHCHECK')).toContain('/readyz')
  expect(last('HEALTHCHECK')).toContain('CMD ["node", "-e", ')
})
