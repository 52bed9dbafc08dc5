/** Node 20 has no `fs.globSync`, which the suite imports and a server run does not call. */
import { register } from 'node:module'

const hooks = `
export const resolve = (specifier, context, next) =>
  specifier === 'fs' ? { url: 'with-glob-sync:fs', shortCircuit: true } : next(specifier, context)
export const load = (url, context, next) =>
  url === 'with-glob-sync:fs'
    ? {
        format: 'module',
        shortCircuit: true,
        source: "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = () => []",
      }
    : next(url, context)
`

if (Number(process.versions.node.split('.')[0]) < 22)
  register(`data:text/javascript,${encodeURIComponent(hooks)}`)
