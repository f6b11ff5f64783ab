import { join } from 'node:path'
import { root, runNode, tool } from './run.mjs'

/**
 * Compiles the campaigns of test/ beside the package, which never contains them. Returns false, with the compiler's output
 * printed and the exit code set, when that fails.
 */
export async function compileCampaign() {
  const { code, output } = await runNode([tool('typescript', 'tsc'), '-p', join(root, 'tsconfig.campaign.json')])
  if (code === 0) return true
  console.error(output)
  process.exitCode = 1
  return false
}
